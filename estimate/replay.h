#pragma once
// What a run's requests make of the device's allocator.

#include <memory>
#include <optional>

#include "estimate/prepare/memory_limit.h"
#include "estimate/results/verdict.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/device_allocator.h"
#include "meta/trace/trace.h"
#include "profiler/allocator/phases.h"
#include "program/program.h"

namespace metaprof {

/// How the device's caching allocator is made. `memory`: what of the device's it can have. Errors: as make_allocator.
CachingAllocatorOptions allocator_options(const RunOptions& options, const Platform& platform, Bytes memory);

/// The allocator of the device. `memory`: what of the device's it can have. Errors: --alloc-conf has no effect on it.
std::unique_ptr<DeviceAllocator> make_allocator(const RunOptions& options, const Platform& platform,
                                                Bytes memory);

/// Says what an error in a call of the program's forward frees besides its results.
WaitingResults waiting_in(const Program& program);

/// The allocator's statistics alone. `memory`: what of the device's it can have, or no limit. `program`: that was run;
/// its source says what goes where memory runs out; null: not asked.
Phases replay_trace(const Trace& trace, const RunOptions& options, const Platform& platform, Bytes memory,
                    const Program* program = nullptr);
Phases replay_requests(const Requests& requests, const RunOptions& options, const Platform& platform,
                       Bytes memory);

/// Whether these steps fit. `needed`: where memory runs out, what would be reserved without a limit.
Verdict verdict_of(const RunOptions& options, const Platform& platform, const Phases& phases,
                   std::optional<Bytes> needed);

}  // namespace metaprof
