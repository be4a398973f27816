#pragma once
// What a process takes of a card beside the memory that PyTorch's allocator reserves: the CUDA context, loaded
// kernels, handles of libraries. Nothing here is exact: the driver decides it, and what is known are reports.

#include <string>

#include "core/units.h"
#include "meta/platform/platform.h"

namespace metaprof {

/// From the least to the most that was reported for this compute capability, or for the nearest one.
struct OutsideAllocator {
  Bytes least, most;
  std::string source;  ///< where that is from; empty on a CPU, where both are 0
};
OutsideAllocator outside_allocator(const Platform& platform);
/// Where `measured` bytes were taken by a process of which PyTorch was no part: its kernels may add what reports of one
/// capability differ by.
OutsideAllocator outside_allocator(const Platform& platform, Bytes measured);

}  // namespace metaprof
