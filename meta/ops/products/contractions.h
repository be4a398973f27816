#pragma once
// Sums over products of tensors whose dimensions are aligned.

#include "meta/session/call.h"

namespace metaprof {

/// Σ left · right over `dims`, by one batched product of matrices (aten/src/ATen/native/Linear.cpp,
/// sumproduct_pair, 2.11). Both have the same number of dimensions; those of size 1 repeat. Summed dimensions
/// stay with size 1.
Tensor sum_of_products(Session& session, Tensor left, Tensor right, const Sizes& dims);

}  // namespace metaprof
