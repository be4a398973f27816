#pragma once
// What operators on (batches of) matrices share.

#include "meta/ops/rules/formulas.h"

namespace metaprof {

inline Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                               bool ones_on_diagonal = false) {
  return call<"linalg_solve_triangular">(session_of(a), a, b, upper, left, ones_on_diagonal);
}

/// Sizes without the last two. Errors: there are no two.
inline Sizes batch_of(const Tensor& a) { return without_last(a.sizes(), 2); }
/// Batch sizes with more behind them.
inline Sizes with_batch(Sizes batch, std::initializer_list<int64_t> sizes) {
  batch.append(sizes.begin(), sizes.end());
  return batch;
}
/// Strides of batches of matrices whose columns lie one after the other, as LAPACK wants them.
inline Sizes column_major(SizesView sizes) {
  Sizes strides = contiguous_strides(sizes);
  const size_t row = without_last(sizes, 2).size();
  strides[row] = 1;
  strides[row + 1] = std::max<int64_t>(1, sizes[row]);
  return strides;
}
/// As is_contiguous: sizes of 1 may have any stride.
bool is_column_major(const Tensor& a);

/// Whether a solver or a determinant factorised Aᵀ: a contiguous A is its transpose by columns.
inline bool factors_transpose(const Tensor& a) { return a.is_contiguous() && !is_complex(a.dtype()); }

/// Square matrices; an Error names the operator.
void check_square(const Call& call, const Tensor& a);
/// A list of pointers to the matrices of a batch, made on the device.
Tensor pointers(Call& call, int64_t matrices);
/// The results of a factorisation by LU: both factors in one matrix by columns, pivots.
void lu_outputs(Call& call, const Tensor& a);
/// What a factorisation by LU with pivots asks for besides its results.
void factorise(Call& call, const Tensor& a);
/// What cuBLAS asks for that takes both batches of matrices as lists of pointers.
void solve_by_lists(Call& call, const Tensor& a, const Tensor& b);
/// What triangular systems ask for to be solved in `b`.
void solve_triangles(Call& call, const Tensor& a, const Tensor& b);
/// What cuBLAS asks for to factorise several matrices by QR; false, and nothing, for those that cuSOLVER takes.
bool reflect_by_cublas(Call& call, const Tensor& a);
/// The gradient of a matrix of which this is the pseudo-inverse, whose gradient is given.
Tensor pseudo_inverse_gradient(const Tensor& grad, const Tensor& inverse, const Tensor& a);
/// Whether `b` is one vector for each matrix rather than a matrix.
bool is_vector_case(const Tensor& a, const Tensor& b);
/// An error where the info of a factorisation says that it failed; `name` is for the message.
inline void check_info(Session& s, const Tensor& info, const char* name) {
  call_all<"_linalg_check_errors">(s, info, name, info.dim() == 0);
}

/// n³ operations, times a factor; where the sides differ, the square of the shorter one counts.
template <int factor>
FlopCount cubic_flops(const Call& c) {
  const Tensor& a = c.arguments[0].tensor();
  return {.own = a.dim() < 2 ? 0 : multiply(multiply(factor, a.numel()), std::min(a.size(-1), a.size(-2)))};
}

}  // namespace metaprof
