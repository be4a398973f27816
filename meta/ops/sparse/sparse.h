#pragma once
// Sparse tensors: coordinates and values (COO), as the gradients of embeddings are, or compressed rows or columns.
// Their memory is that of their parts; the sparse tensor itself has none.

#include "meta/session/call.h"

namespace metaprof {

/// A part of a sparse tensor: of COO indices (0) and values (1), of a compressed one two lists of indices and values.
inline Tensor sparse_part(const Tensor& sparse, size_t i) { return Tensor(sparse->extra->parts[i]); }

/// Another tensor over the same parts, without history.
Tensor sparse_alias(const Tensor& sparse);

/// A sparse tensor over these (not copied) indices [dimensions, count] and values [count, …].
Tensor make_sparse(Session& session, const Tensor& indices, const Tensor& values, SizesView sizes);

/// A compressed matrix (CSR, CSC, BSR or BSC) over these (not copied). Of CSR: where each row begins [rows + 1], columns
/// [n] and values [n]; of CSC columns and rows change places, of BSR and BSC values are blocks [n, height, width].
Tensor make_sparse_compressed(Session& session, Layout layout, const Tensor& compressed, const Tensor& plain,
                              const Tensor& values, SizesView sizes);

/// The coordinates of a matrix of compressed rows or columns, over the same values. Errors: another layout.
Tensor coordinates_of_compressed(Session& session, const Tensor& self);
/// Compressed rows of what is not 0 in a dense matrix.
Tensor rows_of_dense(Session& session, const Tensor& self);
/// All elements of a matrix of compressed rows or columns. Errors: another layout.
Tensor dense_of_compressed(Session& session, const Tensor& self, DType dtype);

/// The transposed matrix, or two dimensions of coordinates swapped: no view of `self`, which is an argument of the call.
Tensor transposed_sparse(Call& c, int64_t dim0, int64_t dim1);

/// The product of a sparse and a dense matrix. Errors: other pairs. False if both are dense.
bool product_with_sparse(Call& c, const Tensor& sparse, const Tensor& dense);
/// … added to the call's `self`.
bool sum_with_sparse_product(Call& c, const Tensor& sparse, const Tensor& dense);

/// A closed library takes memory for the call, of which nobody knows how much: counted as nothing, and named (a workspace
/// of 0 bytes that is an estimate).
void note_unknown_scratch(const Call& c);

/// The coordinates of each element as one number: a view of `indices` where there is one dimension.
Tensor flat_indices(Session& session, const Tensor& indices);

/// −tensor, which may have coordinates: then copies of values and indices.
Tensor negative(Session& session, const Tensor& tensor);

/// The result of a sum with a sparse operand. Dense and sparse: dense. COO and COO: indices and values are
/// joined, nothing is added up. CSR and CSR: room for all elements of both, as if none met; how many do
/// depends on the data. Errors: sums that the framework does not have. False if neither operand is sparse.
bool sum_of_sparse(Call& c);

}  // namespace metaprof
