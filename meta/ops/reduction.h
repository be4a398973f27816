#pragma once
// Reductions: sizes of results, and the blocks that a CUDA kernel shares between thread blocks.

#include "meta/op/call.h"

namespace metaprof {

/// Dimensions to reduce: those given, wrapped; none or empty means all.
Sizes reduced_dims(const Call& call, const Value& dims, int64_t count);
/// Sizes after reducing these (wrapped) dimensions.
Sizes reduced_sizes(SizesView sizes, SizesView dims, bool keepdim);

/// How a kernel reduces (aten/src/ATen/native/cuda/Reduce.cuh, 2.11).
struct ReductionKernel {
  int64_t accumulator = 4;    ///< bytes of one partial result
  int64_t vector = 4;         ///< elements per load where the whole iterator is one contiguous dimension
  int values_per_thread = 4;  ///< "vt0"; below 4 nothing is loaded as vectors
};

/// Asks for buffer and semaphores if the reduction is split over several thread blocks, and frees them again:
/// semaphores first (recorded: rule R1). Operands beyond 2³¹ − 1 bytes are halved, each part with buffers of
/// its own; 16-bit results are then accumulated in an fp32 copy.
void reduction_buffers(Call& call, const Tensor& input, SizesView dims, const Tensor& result,
                       const ReductionKernel& kernel);

}  // namespace metaprof
