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

/// The layout of the transposed compressed matrix over the same parts.
Layout flipped(Layout layout);
/// The coordinates of a compressed matrix, over the same values.
Tensor coordinates_of_compressed(Session& session, const Tensor& self);
/// Coordinates in the layout of another matrix, and in blocks of its sizes.
Tensor compressed_like(Session& session, const Tensor& coordinates, const Tensor& other);
/// All elements of a compressed matrix.
Tensor dense_of_compressed(Session& session, const Tensor& self, DType dtype);

/// The transposed matrix, or two dimensions of coordinates swapped: no view of `self`, which is an argument of the call.
Tensor transposed_sparse(Call& c, int64_t dim0, int64_t dim1);

/// The product of matrices of which one or both are sparse. Errors: pairs that the framework does not have. False if
/// both are dense.
bool product_with_sparse(Call& c, const Tensor& a, const Tensor& b);
/// … added to the call's `self`.
bool sum_with_sparse_product(Call& c, const Tensor& a, const Tensor& b);

/// The product of two matrices of compressed rows.
Tensor product_of_rows(const Call& c, const Tensor& a, const Tensor& b);
/// Compressed rows without elements, of the size of a · b.
Tensor zero_rows(Session& session, const Tensor& a, const Tensor& b);
/// A product where `self` has elements, as new compressed rows over copies of its lists.
Tensor sampled_product(const Call* c, Session& session, const Tensor& self);
/// The product of rows of blocks and a dense matrix, added to `sum`.
void add_product_of_blocks(Call& c, const Tensor& blocks, const Tensor& dense, const Tensor& sum);

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
