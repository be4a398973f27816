#include "estimate/replay.h"

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "estimate/prepare/framework.h"
#include "meta/allocator/exact_allocator.h"
#include "program/source/waiting_results.h"

namespace metaprof {
namespace {

AllocConf conf_of(const RunOptions& options, const Platform& platform) {
  if (platform.hardware.is_cpu() && !options.alloc_conf.empty())
    fail("--alloc-conf has no effect on {}: the host's memory is not cached", platform.hardware.name);
  return parse_alloc_conf(allocator_settings(options, platform.framework));
}

}  // namespace

// `memory` is what the allocator can have: the rest of the device is taken by others.
CachingAllocatorOptions allocator_options(const RunOptions& options, const Platform& platform, Bytes memory) {
  const auto free = static_cast<uint64_t>(memory.count);
  const uint64_t total = std::max(free, static_cast<uint64_t>(platform.hardware.memory.count));
  return {.conf = conf_of(options, platform),
          .device = {.capacity = total, .used_by_others = total - free},
          .order = platform.framework.free_block_order};
}

// The framework caches memory of CUDA devices; that of the host is taken and given back as it is needed.
std::unique_ptr<DeviceAllocator> make_allocator(const RunOptions& options, const Platform& platform,
                                                Bytes memory) {
  const CachingAllocatorOptions made_so = allocator_options(options, platform, memory);
  if (platform.hardware.is_cpu()) return std::make_unique<ExactAllocator>();
  return std::make_unique<CachingAllocator>(made_so);
}

WaitingResults waiting_in(const Program& program) {
  return [&](size_t failed) { return waiting_results(program, failed); };
}

Phases replay_trace(const Trace& trace, const RunOptions& options, const Platform& platform, Bytes memory,
                    const Program* program) {
  return replay(trace, platform.device(), *make_allocator(options, platform, memory),
                program ? waiting_in(*program) : WaitingResults());
}

Phases replay_requests(const Requests& requests, const RunOptions& options, const Platform& platform,
                       Bytes memory) {
  return replay(requests, *make_allocator(options, platform, memory));
}

Verdict verdict_of(const RunOptions& options, const Platform& platform, const Phases& phases,
                   std::optional<Bytes> needed) {
  const Verdict device{.device = platform.hardware.name,
                       .outside = outside_of(options, platform).most,
                       .margin = margin_of(options),
                       .memory = platform.hardware.memory};
  return judge(device, phases, needed);
}

}  // namespace metaprof
