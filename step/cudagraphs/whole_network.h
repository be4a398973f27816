#pragma once
// What a step that is captured as one CUDA graph takes of device memory, and what a replay costs beside it.

#include <optional>
#include <string>

#include "step/cudagraphs/memory_statistics.h"
#include "step/whole_network.h"

namespace metaprof {

/// Where memory ran out.
struct FailedCapture {
  std::string place;  ///< "setup", "warm", "captured"
  Bytes requested;
};

struct WholeNetworkMemory {
  MemoryStatistics setup, warm, captured, replayed;  ///< after each; peaks since the process began
  Bytes copied;          ///< from the program's inputs into those of the graph, per replay
  int64_t launches = 0;  ///< operators of the captured step, which each replay launches as one graph
  std::optional<FailedCapture> out_of_memory;  ///< what comes after it is as it was then
};

/// Feeds the storages of one device to a new allocator.
WholeNetworkMemory measure(const WholeNetworkTrace& run, Device device, CachingAllocator& allocator);

}  // namespace metaprof
