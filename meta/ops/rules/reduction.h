#pragma once
// Reductions: sizes of results, and the blocks that a CUDA kernel shares between thread blocks.

#include "meta/session/call.h"

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
/// semaphores first (recorded: `shapes/reduce`). Operands beyond 2³¹ − 1 bytes are halved, each part with buffers of
/// its own; what does not fit the result's elements is then accumulated in a block that outlives the parts.
void reduction_buffers(Call& call, const Tensor& input, SizesView dims, const Tensor& result,
                       const ReductionKernel& kernel);

/// Bytes of one partial sum or product in a result dtype.
int64_t accumulator_bytes(DType dtype);
/// What a sum, mean, product or norm runs over: the input in the result's dtype; 16-bit inputs of fp32
/// results are converted by the kernel itself (aten/src/ATen/native/ReduceOpsUtils.h,
/// make_reduction_from_out_ty).
Tensor reduction_input(Call& call, const Tensor& self, DType result);

/// A sum into result 0: its memory, the copy of integers in the result's dtype, the buffers.
void sum_into_result(Call& call, const Tensor& input, const Value& dims);

/// Adds a result: `input` reduced over a `dim` and `keepdim` argument as given.
void reduced_output(Call& call, const Tensor& input, const Value& dims, bool keepdim, DType dtype);

/// A reduced tensor with a dimension of size 1 for each that was reduced: views. `dims` as an operator was
/// given them; without any the tensor stays as it is.
Tensor restore_dims(const Tensor& reduced, const Value& dims, int64_t count);
/// Product of the sizes that were reduced.
int64_t reduced_count(SizesView sizes, const Value& dims);

}  // namespace metaprof
