#pragma once
// What products of matrices share.

#include "meta/autograd/backward.h"

namespace metaprof {

/// The matrix, or a contiguous copy where cuBLAS cannot take its strides.
Tensor blas_operand(Call& c, const Tensor& matrix);
/// As above for a batch of matrices.
Tensor batched_operand(Call& c, const Tensor& matrices);
/// gradient · factor; the gradient itself if the factor is 1 (FunctionsManual.cpp, maybe_multiply).
Tensor times(const Tensor& gradient, const Value& factor);

}  // namespace metaprof
