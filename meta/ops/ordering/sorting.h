#pragma once
// Memory of the sorting kernels, shared by operators that sort.

#include "meta/session/call.h"

namespace metaprof {

/// Temporaries of a stable sort of `self` along a dimension into values and indices that exist already
/// (aten/src/ATen/native/cuda/Sort.cpp, sort_cuda_kernel).
void sort_temporaries(Call& call, const Tensor& self, const Tensor& values, const Tensor& indices,
                      int64_t dim);

/// Temporaries of the k largest (or smallest) along a dimension, sorted or not, into results that exist
/// already (aten/src/ATen/native/cuda/TensorTopK.cpp).
void topk_temporaries(Call& call, const Tensor& self, const Tensor& values, const Tensor& indices,
                      int64_t dim, bool sorted);

}  // namespace metaprof
