#pragma once
// A run as PyTorch's memory snapshot, a pickle: what torch.cuda.memory._dump_snapshot writes of a run whose
// history was recorded. It opens at pytorch.org/memory_viz and in torch/cuda/_memory_viz.py.

#include <string>

#include "profiler/allocator/allocator_history.h"

namespace metaprof {

/// Frames have the operator as function and the module's path as file name; times are indices of events.
std::string memory_snapshot(const AllocatorHistory& history);

}  // namespace metaprof
