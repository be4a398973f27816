#pragma once
// The smallest memory in which the allocator can still serve everything that a run asks for.

#include <optional>

#include "estimate/read.h"

namespace metaprof {

/// With less than is reserved at the peak, the framework's allocator frees what it caches and asks the device again: the
/// step runs all the same, down to this memory, to 2 MiB. Found by giving the run's own requests to allocators with less
/// and less memory (profiler/allocator/least_memory.h). Nothing: the device has no caching allocator, or memory runs out even without a limit.
std::optional<Bytes> least_memory(const Estimate& estimate);

}  // namespace metaprof
