#pragma once
// Sparse tensors: coordinates and values, as the gradients of embeddings are. Their memory is that of these
// two; the sparse tensor itself has none.

#include "meta/op/call.h"

namespace metaprof {

/// A sparse tensor over these (not copied) indices [dimensions, count] and values [count, …].
Tensor make_sparse(Session& session, const Tensor& indices, const Tensor& values, SizesView sizes);

/// The result of a sum of sparse tensors: indices and values are joined, nothing is added up. False if
/// neither operand is sparse.
bool sum_of_sparse(Call& c);

}  // namespace metaprof
