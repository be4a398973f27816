#pragma once
// What products of matrices share.

#include "meta/autograd/engine/backward.h"

namespace metaprof {

/// One of the last two strides is 1 and the other spans at least a row or a column.
bool blas_takes(const Tensor& matrices);

/// What cuBLAS works on, in the order in which it is copied where it has other strides: the result, then the
/// factors. A result by rows is the transpose of the product of the transposed factors, so the second factor
/// comes first.
struct BlasOperands {
  BlasOperands(Call& c, const Tensor& a, const Tensor& b);
  Tensor result, first, second;
};
/// As above for batches of matrices.
struct BatchedOperands {
  BatchedOperands(const Call& c, const Tensor& a, const Tensor& b);
  Tensor result, first, second;
};

}  // namespace metaprof
