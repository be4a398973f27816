#pragma once
// What a model whose forward and backward are captured by make_graphed_callables takes of device memory.

#include <optional>

#include "step/cudagraphs/memory_statistics.h"
#include "step/cudagraphs/whole_network.h"
#include "step/graphed_callables.h"

namespace metaprof {

struct GraphedCallablesMemory {
  MemoryStatistics setup, captured, replayed;  ///< after each; peaks since the process began
  std::optional<FailedCapture> out_of_memory;  ///< what comes after it is as it was then
};

/// Feeds the storages of one device to a new allocator.
GraphedCallablesMemory measure(const GraphedCallables& run, Device device, CachingAllocator& allocator);

}  // namespace metaprof
