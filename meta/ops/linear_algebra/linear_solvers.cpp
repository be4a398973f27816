// Factors of square matrices and what is solved with them (aten/src/ATen/native/BatchLinearAlgebra.cpp,
// PyTorch 2.11). The libraries' own scratch memory (cuSOLVER, MAGMA) is not known; what the framework asks
// for around them is.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"

namespace metaprof {

bool is_column_major(const Tensor& a) {
  Sizes sizes = a.sizes(), strides = a.strides();
  const size_t n = sizes.size();
  std::swap(sizes[n - 2], sizes[n - 1]);
  std::swap(strides[n - 2], strides[n - 1]);
  return is_contiguous(sizes, strides);
}

void check_square(const Call& c, const Tensor& a) {
  if (a.dim() < 2 || a.size(-1) != a.size(-2))
    c.error(fmt::format("expects square matrices, got {}", describe(a)));
}

Tensor pointers(Call& c, int64_t matrices) { return c.temporary(Sizes{matrices}, DType::i64); }

namespace {

// Several matrices are handed over as a list of pointers.
bool are_listed(const Tensor& a) { return numel(batch_of(a)) > 1 && a.numel() > 0; }

}  // namespace

// lu_factor (cuda/linalg/BatchLinearAlgebra.cpp): several small square matrices are one call of cuBLAS; other ones are
// for cuSOLVER or MAGMA, which ask for nothing here.
void factorise(Call& c, const Tensor& a) {
  const int64_t n = a.size(-1), matrices = numel(batch_of(a));
  const bool small = n <= 16 || (n <= 128 && matrices <= 16);
  if (!are_listed(a) || n != a.size(-2) || !small) return;
  const Tensor of_a = pointers(c, numel(batch_of(a)));
  cublas_workspace(c);
}

namespace {

// Without pivoting the rows stand in order. From 2.15 on cuSOLVER takes one matrix after the other then (recorded:
// `opinfo/linalg.lu_factor/17`).
template <bool one_by_one>
void factorise_as_pivoted(Call& c, const Tensor& a, bool pivot) {
  if (pivot || !one_by_one) factorise(c, a);
  if (!pivot && a.numel() > 0)
    const Tensor order = c.temporary(Sizes{std::min(a.size(-1), a.size(-2))}, DType::i32);
}

// --- Cholesky

void cholesky_ex_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  check_square(c, self);
  c.output(self.sizes(), column_major(self.sizes()), self.dtype());
  c.output(batch_of(self), DType::i32);
}

// FunctionsManual.cpp, cholesky_backward.
Gradients cholesky_gradient(Backward& b, const Tensor& result) {
  const bool upper = b.boolean("upper");
  const Tensor lower = upper ? mH(result) : result;
  const Tensor grad = upper ? mH(b.grad()) : b.grad();
  Tensor inner;
  {
    Tensor triangle;
    {
      const Tensor product = matmul(mH(lower), grad);
      triangle = tril(product);
    }
    const Tensor below = tril(triangle, -1);
    const Tensor both = triangle + mH(below);
    inner = both * 0.5;
  }
  const Tensor half = solve_triangular(mH(lower), inner, true);
  inner.reset();
  return {solve_triangular(lower, half, false, false)};
}

void cholesky_body(Call& c) {
  Results factor = call_all<"linalg_cholesky_ex">(c.session, c["self"], c["upper"], false);
  check_info(c.session, factor[1], "linalg.cholesky");
  c.result(factor[0]);
}

void cholesky_ex_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  if (are_listed(self)) const Tensor of_self = pointers(c, numel(batch_of(self)));
}

void cholesky_old_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  if (self.numel() == 0) return;
  const Tensor info = c.temporary(batch_of(self), DType::i32);
  if (are_listed(self)) const Tensor of_self = pointers(c, numel(batch_of(self)));
  check_info(c.session, info, "cholesky");
}

constexpr Op kCholeskyFactors[] = {
    {.schema = "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
               "Tensor info)",
     .summary = "self = L · Lᴴ",
     .meta = cholesky_ex_meta,
     .host_code = {{DeviceType::cuda, cholesky_ex_cuda}},
     .derivatives = {{{"self"},
                      {"L"},
                      [](Backward& b) -> Gradients { return cholesky_gradient(b, b("L")); }}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = c.tensor("self").numel() * c.tensor("self").size(-1) / 3};
     },
     .examples = {"f32[5,5]", "f32[2,3,3] True"},
     .facts = {.no_gradient_for = {"info"}}},
    composite_of("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", "self = L · Lᴴ",
                 cholesky_body, {"f32[5,5]"}),
    {.schema = "cholesky(Tensor self, bool upper=False) -> Tensor",
     .summary = "self = L · Lᴴ",
     .meta =
         [](Call& c) {
           const Tensor& self = c.tensor("self");
           check_square(c, self);
           c.output(self.sizes(), column_major(self.sizes()), self.dtype());
         },
     .host_code = {{DeviceType::cuda, cholesky_old_cuda}},
     .derivatives = {{{"self"},
                      {"result"},
                      [](Backward& b) -> Gradients { return cholesky_gradient(b, b("result")); }}},
     .flops = cubic_flops<1>,
     .examples = {"f32[5,5]"}}};

// --- LU with pivots

}  // namespace

void lu_outputs(Call& c, const Tensor& a) {
  if (a.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(a)));
  c.output(a.sizes(), column_major(a.sizes()), a.dtype());
  c.output(with_batch(batch_of(a), {std::min(a.size(-1), a.size(-2))}), DType::i32);
}

namespace {

void lu_factor_ex_meta(Call& c) {
  const Tensor& a = c.arguments[0].tensor();
  lu_outputs(c, a);
  c.output(batch_of(a), DType::i32);
}

template <bool one_by_one>
void lu_factor_ex_cuda(Call& c) {
  c.allocate_all();
  factorise_as_pivoted<one_by_one>(c, c.tensor("A"), c.boolean("pivot"));
}

// Zeros for the rows or columns that a gradient does not reach.
Tensor beside_zeros(const Tensor& gradient, const Tensor& rest, int64_t dim) {
  const Tensor zeros = call<"zeros_like">(session_of(rest), rest);
  return call<"cat">(session_of(rest), Value::Tensors{gradient, zeros}, dim);
}

// FunctionsManual.cpp, linalg_lu_backward.
Tensor lu_gradient(const Tensor& grad_l, const Tensor& grad_u, const Tensor& p, const Tensor& l,
                   const Tensor& u, bool pivot) {
  const int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  Tensor gradient;
  if (m == n) {
    if (grad_l.defined()) {
      const Tensor product = matmul(mH(l), grad_l);
      gradient = tril(product, -1);
    }
    if (grad_u.defined()) {
      const Tensor product = matmul(grad_u, mH(u)), triangle = triu(product);
      gradient = gradient.defined() ? gradient + triangle : triangle;
    }
    gradient = solve_triangular(mH(u), gradient, false, false);
    gradient = solve_triangular(mH(l), gradient, true, true, true);
  } else if (m < n) {
    if (grad_l.defined()) gradient = matmul(mH(l), grad_l);
    if (grad_u.defined()) {
      const Tensor triangle = triu(grad_u), product = matmul(triangle, mH(u));
      gradient = gradient.defined() ? gradient - product : neg(product);
    }
    {
      const Tensor triangle = tril(gradient, -1);
      gradient = solve_triangular(mH(narrow(u, -1, 0, k)), triangle, false, false);
    }
    if (grad_u.defined()) {
      const Tensor first = triu(narrow(grad_u, -1, 0, k)), left = gradient + first;
      gradient = call<"cat">(session_of(left), Value::Tensors{left, narrow(grad_u, -1, k, n - k)}, -1);
    }
    gradient = solve_triangular(mH(l), gradient, true, true, true);
    if (!grad_u.defined()) gradient = beside_zeros(gradient, narrow(u, -1, k, n - k), -1);
  } else {
    if (grad_u.defined()) gradient = matmul(grad_u, mH(u));
    if (grad_l.defined()) {
      const Tensor triangle = tril(grad_l, -1), product = matmul(mH(l), triangle);
      gradient = gradient.defined() ? gradient - product : neg(product);
    }
    {
      const Tensor triangle = triu(gradient);
      gradient = solve_triangular(mH(narrow(l, -2, 0, k)), triangle, true, true, true);
    }
    if (grad_l.defined()) {
      const Tensor first = tril(narrow(grad_l, -2, 0, k), -1), top = gradient + first;
      gradient = call<"cat">(session_of(top), Value::Tensors{top, narrow(grad_l, -2, k, m - k)}, -2);
    }
    gradient = solve_triangular(mH(u), gradient, false, false);
    if (!grad_l.defined()) gradient = beside_zeros(gradient, narrow(l, -2, k, m - k), -2);
  }
  return pivot ? matmul(p, gradient) : gradient;
}

Gradients lu_factor_gradient(Backward& b) {
  const bool pivot = b.boolean("pivot");
  const Results parts = call_all<"lu_unpack">(b.session, b("LU"), b("pivots"), true, pivot);
  const Tensor p = parts[0], l = parts[1], u = parts[2];
  const int64_t k = std::min(l.size(-2), u.size(-1));
  return {lu_gradient(narrow(b.grad(), -1, 0, k), narrow(b.grad(), -2, 0, k), p, l, u, pivot)};
}

void lu_factor_body(Call& c) {
  Results all = call_all<"linalg_lu_factor_ex">(c.session, c["A"], c["pivot"], false);
  check_info(c.session, all[2], "torch.linalg.lu_factor");
  c.result(all[0]);
  c.result(all[1]);
}

void lu_with_info_body(Call& c) {
  Results all = call_all<"linalg_lu_factor_ex">(c.session, c["self"], c["pivot"], c["check_errors"]);
  for (size_t i = 0; i < 3; ++i) c.result(all[i]);
}

struct LuSizes {
  Sizes p, l, u;
};
LuSizes lu_parts(const Tensor& lu) {
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const Sizes batch = batch_of(lu);
  return {with_batch(batch, {m, m}), with_batch(batch, {m, k}), with_batch(batch, {k, n})};
}

// A range of places, repeated for each matrix of a batch, says where the ones are.
void permutation(Call& c, const Tensor& lu) {
  Tensor places = c.temporary(Sizes{lu.size(-2)}, DType::i64);
  if (lu.dim() > 2) places = c.temporary(with_batch(batch_of(lu), {lu.size(-2)}), DType::i64);
}

void lu_unpack_meta(Call& c) {
  const Tensor& lu = c.tensor("LU_data");
  const LuSizes sizes = lu_parts(lu);
  const Sizes none{0};
  const bool data = c.boolean("unpack_data");
  c.output(c.boolean("unpack_pivots") ? sizes.p : none, lu.dtype());
  c.output(data ? sizes.l : none, lu.dtype());
  c.output(data ? sizes.u : none, lu.dtype());
}

void lu_unpack_cuda(Call& c) {
  c.allocate_all();
  if (c.boolean("unpack_pivots")) permutation(c, c.tensor("LU_data"));
}

void linalg_lu_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  if (a.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(a)));
  const LuSizes sizes = lu_parts(a);
  c.output(c.boolean("pivot") ? sizes.p : Sizes{0}, a.dtype());
  c.output(sizes.l, a.dtype());
  c.output(sizes.u, a.dtype());
}

// The factors are computed in the larger of the two results, in columns, then copied back and taken apart.
template <bool one_by_one>
void linalg_lu_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  const bool pivot = c.boolean("pivot");
  c.allocate_all();
  Tensor columns = c.temporary(a.sizes(), a.dtype());
  const Tensor pivots = c.temporary(with_batch(batch_of(a), {std::min(a.size(-1), a.size(-2))}), DType::i32);
  const Tensor info = c.temporary(batch_of(a), DType::i32);
  factorise_as_pivoted<one_by_one>(c, a, pivot);
  columns.reset();
  if (pivot) permutation(c, a);
}

Gradients linalg_lu_gradients(Backward& b) {
  const Tensor &l = b("L"), &u = b("U"), &p = b("P");
  if (!b.grad(0).defined() && !b.grad(1).defined()) return {Tensor()};
  return {lu_gradient(b.grad(0), b.grad(1), p, l, u, b.boolean("pivot"))};
}

// With more rows or columns of zeros, if there are any.
Tensor widened(const Tensor& triangle, int64_t dim, int64_t more) {
  if (more <= 0) return triangle;
  Sizes sizes = triangle.sizes();
  sizes[sizes.size() + size_t(dim)] = more;
  const Tensor zeros = zeros_of(triangle, sizes);
  return call<"cat">(session_of(triangle), Value::Tensors{triangle, zeros}, dim);
}

// −1 and below from l, the rest from u; what is more of one of them stands beside.
Tensor joined_triangles(const Tensor& l, const Tensor& u, int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  Tensor square;
  {
    const Tensor high = triu(n > m ? narrow(u, -1, 0, k) : u);
    const Tensor low = tril(m > n ? narrow(l, -2, 0, k) : l, -1);
    square = low + high;
  }
  if (m == n) return square;
  const Tensor rest = n > m ? narrow(u, -1, k, n - k) : narrow(l, -2, k, m - k);
  return call<"cat">(session_of(l), Value::Tensors{square, rest}, n > m ? -1 : -2);
}

constexpr Op lu_factor(void (*host_code)(Call&)) {
  return {.schema =
              "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
              "Tensor pivots, Tensor info)",
          .summary = "A = P · L · U, both factors in one matrix",
          .meta = lu_factor_ex_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"A"}, {"LU", "pivots"}, lu_factor_gradient}},
          .flops = cubic_flops<1>,
          .examples = {"f32[5,5]", "f32[3,5]", "f32[5,3]"},
          .facts = {.no_gradient_for = {"pivots", "info"}}};
}

constexpr Op linalg_lu(void (*host_code)(Call&)) {
  return {.schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
          .summary = "A = P · L · U",
          .meta = linalg_lu_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"A"}, {"P", "L", "U"}, linalg_lu_gradients}},
          .flops = cubic_flops<1>,
          .examples = {"f32[5,5]", "f32[3,5]", "f32[5,3]"},
          .facts = {.no_gradient_for = {"P"}}};
}

constexpr Op kLu[] = {
    before({2, 15}, lu_factor(lu_factor_ex_cuda<false>)),
    since({2, 15}, lu_factor(lu_factor_ex_cuda<true>)),
    composite_of("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
                 "A = P · L · U, both factors in one matrix", lu_factor_body, {"f32[5,5]"}),
    composite_of("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor "
                 "pivots, Tensor info)",
                 "self = P · L · U, both factors in one matrix", lu_with_info_body, {"f32[5,5]"}),
    {.schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
               "-> (Tensor P, Tensor L, Tensor U)",
     .summary = "the factors of A = P · L · U apart",
     .meta = lu_unpack_meta,
     .host_code = {{DeviceType::cuda, lu_unpack_cuda}},
     .derivatives = {{{"LU_data"},
                      {},
                      [](Backward& b) -> Gradients {
                        const Sizes& sizes = b.sizes("LU_data");
                        const int64_t m = sizes[sizes.size() - 2], n = sizes.back();
                        return {call<"lu_unpack_backward">(b.session, b.grad(0), b.grad(1), m, n)};
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[5,5] i32[5]", "f32[5,3] i32[3]", "f32[3,5] i32[3]"},
     .facts = {.no_gradient_for = {"P"}}},
    {.schema = "lu_unpack_backward(Tensor? L_grad, Tensor? U_grad, int m, int n) -> Tensor",
     .summary = "gradients of both factors in one matrix",
     .meta = composite([](Call& c) {
       const Tensor &l = c.tensor("L_grad"), &u = c.tensor("U_grad");
       const int64_t m = c.integer("m"), n = c.integer("n");
       if (!l.defined() && !u.defined()) return c.no_output();
       if (!l.defined()) return c.result(widened(triu(u), -2, m - n));
       if (!u.defined()) return c.result(widened(tril(l, -1), -1, n - m));
       c.result(joined_triangles(l, u, m, n));
     }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[5,3] f32[3,3] 5 3"}},
    before({2, 15}, linalg_lu(linalg_lu_cuda<false>)),
    since({2, 15}, linalg_lu(linalg_lu_cuda<true>))};

constexpr Op kLinearSolver[] = {
    {.schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
     .summary = "an error where some factorisation failed",
     .meta = composite([](Call& c) {
       const Tensor failed = call<"any">(c.session, c["info"]);
       call_all<"item">(c.session, failed);
     }),
     .derivatives = not_differentiable,
     .flops = by_body,
     .examples = {"i32[] \"name\" True"},
     .facts = {.cudagraph_unsafe = true, .reads_data = true}}};

}  // namespace

Tables linear_solver_operators() {
  static constexpr Records tables[] = {kCholeskyFactors, kLu, kLinearSolver};
  return tables;
}

}  // namespace metaprof
