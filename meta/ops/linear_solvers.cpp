// Factors of square matrices and what is solved with them (aten/src/ATen/native/BatchLinearAlgebra.cpp,
// PyTorch 2.11). The libraries' own scratch memory (cuSOLVER, MAGMA) is not known; what the framework asks
// for around them is.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/all.h"
#include "meta/ops/arithmetic.h"
#include "meta/ops/matrices.h"

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
void batched_pointers(Call& c, const Tensor& a) {
  if (const int64_t matrices = numel(batch_of(a)); matrices > 1 && a.numel() > 0)
    const Tensor of_a = pointers(c, matrices);
}

}  // namespace

// Several square matrices are one call of the library. Without pivoting the rows stand in order.
void factorise(Call& c, const Tensor& a, bool pivot) {
  if (a.numel() == 0) return;
  if (a.size(-1) == a.size(-2)) batched_pointers(c, a);
  if (!pivot) const Tensor order = c.temporary(Sizes{std::min(a.size(-1), a.size(-2))}, DType::i32);
}

namespace {

Op composed(std::string_view schema, std::string_view summary, void (*body)(Call&),
            std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = composite(body),
          .kernels = {},
          .derivatives = by_body,
          .flops = by_body,
          .examples = {example}};
}

// n³ operations, times a factor.
template <int factor>
FlopCount cubic_flops(const Call& c) {
  const Tensor& a = c.arguments[0].tensor();
  return {.own = a.dim() < 2 ? 0 : factor * a.numel() * a.size(-1)};
}

void check_info(Session& s, const Tensor& info, const char* name) {
  call<"_linalg_check_errors">(s, info, name, info.dim() == 0);
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
  const Tensor lower = upper ? adjoint(result) : result;
  const Tensor grad = upper ? adjoint(b.grad()) : b.grad();
  Tensor inner;
  {
    Tensor triangle;
    {
      const Tensor product = matrix_product(adjoint(lower), grad);
      triangle = lower_triangle(product);
    }
    const Tensor below = lower_triangle(triangle, -1);
    const Tensor both = triangle + adjoint(below);
    inner = both * 0.5;
  }
  const Tensor half = solve_triangular(adjoint(lower), inner, true);
  inner.reset();
  return {solve_triangular(lower, half, false, false)};
}

void cholesky_body(Call& c) {
  Results factor = call<"linalg_cholesky_ex">(c.session, c["self"], c["upper"], false);
  check_info(c.session, factor[1], "linalg.cholesky");
  c.result(factor[0]);
}

void cholesky_ex_cuda(Call& c) {
  c.allocate_all();
  batched_pointers(c, c.tensor("self"));
}

void cholesky_old_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  if (self.numel() == 0) return;
  const Tensor info = c.temporary(batch_of(self), DType::i32);
  batched_pointers(c, self);
  check_info(c.session, info, "cholesky");
}

void add_cholesky(std::vector<Op>& ops) {
  ops.push_back(
      {.schema =
           "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
           "Tensor info)",
       .summary = "self = L · Lᴴ",
       .meta = cholesky_ex_meta,
       .kernels = {{DeviceType::cuda, cholesky_ex_cuda}},
       .derivatives = {{{"self"},
                        {"L"},
                        [](Backward& b) -> Gradients { return cholesky_gradient(b, b("L")); }}},
       .flops = [](const Call& c) -> FlopCount {
         return {.own = c.tensor("self").numel() * c.tensor("self").size(-1) / 3};
       },
       .examples = {"f32[5,5]", "f32[2,3,3] True"},
       .facts = {.no_gradient_for = 2}});
  ops.push_back(composed("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", "self = L · Lᴴ",
                         cholesky_body, "f32[5,5]"));
  ops.push_back(
      {.schema = "cholesky(Tensor self, bool upper=False) -> Tensor",
       .summary = "self = L · Lᴴ",
       .meta =
           [](Call& c) {
             const Tensor& self = c.tensor("self");
             check_square(c, self);
             c.output(self.sizes(), column_major(self.sizes()), self.dtype());
           },
       .kernels = {{DeviceType::cuda, cholesky_old_cuda}},
       .derivatives = {{{"self"},
                        {"result"},
                        [](Backward& b) -> Gradients { return cholesky_gradient(b, b("result")); }}},
       .flops = cubic_flops<1>,
       .examples = {"f32[5,5]"}});
}

// --- LU with pivots

void lu_outputs(Call& c, const Tensor& a) {
  if (a.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(a)));
  c.output(a.sizes(), column_major(a.sizes()), a.dtype());
  c.output(with_batch(batch_of(a), {std::min(a.size(-1), a.size(-2))}), DType::i32);
}

void lu_factor_ex_meta(Call& c) {
  const Tensor& a = c.arguments[0].tensor();
  lu_outputs(c, a);
  c.output(batch_of(a), DType::i32);
}

void lu_factor_ex_cuda(Call& c) {
  c.allocate_all();
  factorise(c, c.tensor("A"), c.boolean("pivot"));
}

// FunctionsManual.cpp, linalg_lu_backward.
Tensor lu_gradient(const Tensor& grad_l, const Tensor& grad_u, const Tensor& p, const Tensor& l,
                   const Tensor& u, bool pivot) {
  const int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  Tensor gradient;
  if (m == n) {
    if (grad_l.defined()) {
      const Tensor product = matrix_product(adjoint(l), grad_l);
      gradient = lower_triangle(product, -1);
    }
    if (grad_u.defined()) {
      const Tensor product = matrix_product(grad_u, adjoint(u)), triangle = upper_triangle(product);
      gradient = gradient.defined() ? gradient + triangle : triangle;
    }
    gradient = solve_triangular(adjoint(u), gradient, false, false);
    gradient = solve_triangular(adjoint(l), gradient, true, true, true);
  } else if (m < n) {
    if (grad_l.defined()) gradient = matrix_product(adjoint(l), grad_l);
    if (grad_u.defined()) {
      const Tensor triangle = upper_triangle(grad_u), product = matrix_product(triangle, adjoint(u));
      gradient = gradient.defined() ? gradient - product : neg(product);
    }
    {
      const Tensor triangle = lower_triangle(gradient, -1);
      gradient = solve_triangular(adjoint(narrowed(u, -1, 0, k)), triangle, false, false);
    }
    if (grad_u.defined()) {
      const Tensor first = upper_triangle(narrowed(grad_u, -1, 0, k)), left = gradient + first;
      gradient = call<"cat">(session_of(left), Value::Tensors{left, narrowed(grad_u, -1, k, n - k)}, -1);
    }
    gradient = solve_triangular(adjoint(l), gradient, true, true, true);
  } else {
    if (grad_u.defined()) gradient = matrix_product(grad_u, adjoint(u));
    if (grad_l.defined()) {
      const Tensor triangle = lower_triangle(grad_l, -1), product = matrix_product(adjoint(l), triangle);
      gradient = gradient.defined() ? gradient - product : neg(product);
    }
    {
      const Tensor triangle = upper_triangle(gradient);
      gradient = solve_triangular(adjoint(narrowed(l, -2, 0, k)), triangle, true, true, true);
    }
    if (grad_l.defined()) {
      const Tensor first = lower_triangle(narrowed(grad_l, -2, 0, k), -1), top = gradient + first;
      gradient = call<"cat">(session_of(top), Value::Tensors{top, narrowed(grad_l, -2, k, m - k)}, -2);
    }
    gradient = solve_triangular(adjoint(u), gradient, false, false);
  }
  return pivot ? matrix_product(p, gradient) : gradient;
}

Gradients lu_factor_gradient(Backward& b) {
  const bool pivot = b.boolean("pivot");
  const Results parts = call<"lu_unpack">(b.session, b("LU"), b("pivots"), true, pivot);
  const Tensor p = parts[0], l = parts[1], u = parts[2];
  const int64_t k = std::min(l.size(-2), u.size(-1));
  return {lu_gradient(narrowed(b.grad(), -1, 0, k), narrowed(b.grad(), -2, 0, k), p, l, u, pivot)};
}

void lu_factor_body(Call& c) {
  Results all = call<"linalg_lu_factor_ex">(c.session, c["A"], c["pivot"], false);
  check_info(c.session, all[2], "torch.linalg.lu_factor");
  c.result(all[0]);
  c.result(all[1]);
}

void lu_with_info_body(Call& c) {
  Results all = call<"linalg_lu_factor_ex">(c.session, c["self"], c["pivot"], c["check_errors"]);
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
  const Tensor places = c.temporary(Sizes{lu.size(-2)}, DType::i64);
  if (lu.dim() > 2) const Tensor of_each = c.temporary(with_batch(batch_of(lu), {lu.size(-2)}), DType::i64);
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
void linalg_lu_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  const bool pivot = c.boolean("pivot");
  c.allocate_all();
  Tensor columns = c.temporary(a.sizes(), a.dtype());
  const Tensor pivots = c.temporary(with_batch(batch_of(a), {std::min(a.size(-1), a.size(-2))}), DType::i32);
  const Tensor info = c.temporary(batch_of(a), DType::i32);
  factorise(c, a, pivot);
  columns.reset();
  if (pivot) permutation(c, a);
}

Gradients linalg_lu_gradients(Backward& b) {
  const Tensor &l = b("L"), &u = b("U"), &p = b("P");
  if (!b.grad(0).defined() && !b.grad(1).defined()) return {Tensor()};
  return {lu_gradient(b.grad(0), b.grad(1), p, l, u, b.boolean("pivot"))};
}

// −1 and below from l, the rest from u; what is more of one of them stands beside.
Tensor joined_triangles(const Tensor& l, const Tensor& u, int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  Tensor square;
  {
    const Tensor high = upper_triangle(n > m ? narrowed(u, -1, 0, k) : u);
    const Tensor low = lower_triangle(m > n ? narrowed(l, -2, 0, k) : l, -1);
    square = low + high;
  }
  if (m == n) return square;
  const Tensor rest = n > m ? narrowed(u, -1, k, n - k) : narrowed(l, -2, k, m - k);
  return call<"cat">(session_of(l), Value::Tensors{square, rest}, n > m ? -1 : -2);
}

void add_lu(std::vector<Op>& ops) {
  ops.push_back(
      {.schema = "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
                 "Tensor pivots, Tensor info)",
       .summary = "A = P · L · U, both factors in one matrix",
       .meta = lu_factor_ex_meta,
       .kernels = {{DeviceType::cuda, lu_factor_ex_cuda}},
       .derivatives = {{{"A"}, {"LU", "pivots"}, lu_factor_gradient}},
       .flops = cubic_flops<1>,
       .examples = {"f32[5,5]", "f32[3,5]", "f32[5,3]"},
       .facts = {.no_gradient_for = 6}});
  ops.push_back(composed("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
                         "A = P · L · U, both factors in one matrix", lu_factor_body, "f32[5,5]"));
  ops.push_back(
      composed("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor "
               "pivots, Tensor info)",
               "self = P · L · U, both factors in one matrix", lu_with_info_body, "f32[5,5]"));
  ops.push_back(
      {.schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
                 "unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
       .summary = "the factors of A = P · L · U apart",
       .meta = lu_unpack_meta,
       .kernels = {{DeviceType::cuda, lu_unpack_cuda}},
       .derivatives = {{{"LU_data"},
                        {},
                        [](Backward& b) -> Gradients {
                          const Sizes& sizes = b.sizes("LU_data");
                          const int64_t m = sizes[sizes.size() - 2], n = sizes.back();
                          return {Tensor(call<"lu_unpack_backward">(b.session, b.grad(0), b.grad(1), m, n))};
                        }}},
       .flops = free_of_flops,
       .examples = {"f32[5,5] i32[5]"},
       .facts = {.no_gradient_for = 1}});
  ops.push_back({.schema = "lu_unpack_backward(Tensor? L_grad, Tensor? U_grad, int m, int n) -> Tensor",
                 .summary = "gradients of both factors in one matrix",
                 .meta = composite([](Call& c) {
                   const Tensor &l = c.tensor("L_grad"), &u = c.tensor("U_grad");
                   if (!l.defined()) return c.result(upper_triangle(u));
                   if (!u.defined()) return c.result(lower_triangle(l, -1));
                   c.result(joined_triangles(l, u, c.integer("m"), c.integer("n")));
                 }),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[5,3] f32[3,3] 5 3"}});
  ops.push_back({.schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
                 .summary = "A = P · L · U",
                 .meta = linalg_lu_meta,
                 .kernels = {{DeviceType::cuda, linalg_lu_cuda}},
                 .derivatives = {{{"A"}, {"P", "L", "U"}, linalg_lu_gradients}},
                 .flops = cubic_flops<1>,
                 .examples = {"f32[5,5]", "f32[3,5]", "f32[5,3]"},
                 .facts = {.no_gradient_for = 1}});
}

// --- triangular systems

void solve_triangular_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("B");
  check_square(c, a);
  const Sizes batch = broadcast(batch_of(a), batch_of(b));
  const Sizes sizes = with_batch(batch, {b.size(-2), b.size(-1)});
  c.output(sizes, column_major(sizes), b.dtype());
}

void pointers_of_both(Call& c, const Tensor& a, const Tensor& b) {
  const int64_t matrices = numel(batch_of(b));
  const Tensor of_a = pointers(c, a.numel() == 0 ? 0 : matrices),
               of_b = pointers(c, b.numel() == 0 ? 0 : matrices);
}

// A matrix that lies neither by columns nor by rows is copied.
void solve_triangular_cuda(Call& c) {
  const Tensor& a = c.tensor("self");
  c.allocate(0);
  Tensor copy;
  if (!is_column_major(a) && !a.is_contiguous()) copy = c.contiguous(transposed(a));
  pointers_of_both(c, a, c.result_tensor());
}

Gradients solve_triangular_gradients(Backward& b) {
  const bool upper = b.boolean("upper"), left = b.boolean("left"), ones = b.boolean("unitriangular");
  const Tensor &a = b("self"), &result = b("result");
  const Tensor of_b = solve_triangular(adjoint(a), b.grad(), !upper, left, ones);
  if (!b.wants("self")) return {of_b, Tensor()};
  Tensor of_a;
  {
    const Tensor product =
        left ? matrix_product(of_b, adjoint(result)) : matrix_product(adjoint(result), of_b);
    of_a = neg(product);
  }
  of_a = upper ? upper_triangle(of_a, ones) : lower_triangle(of_a, -int64_t{ones});
  return {b.wants("B") ? of_b : Tensor(), of_a};
}

void triangular_solve_meta(Call& c) {
  const Tensor &b = c.tensor("self"), &a = c.tensor("A");
  check_square(c, a);
  const Sizes batch = broadcast(batch_of(a), batch_of(b));
  const Sizes of_b = with_batch(batch, {b.size(-2), b.size(-1)}),
              of_a = with_batch(batch, {a.size(-2), a.size(-1)});
  c.output(of_b, column_major(of_b), b.dtype());
  c.output(of_a, column_major(of_a), a.dtype());
}

void triangular_solve_cuda(Call& c) {
  c.allocate_all();
  pointers_of_both(c, c.tensor("A"), c.result_tensor());
}

Gradients triangular_solve_gradients(Backward& b) {
  Session& s = b.session;
  const bool upper = b.boolean("upper"), transpose = b.boolean("transpose"),
             ones = b.boolean("unitriangular");
  Tensor of_a, of_b;
  if (b.grad(0).defined()) {
    {
      Results solved = call<"triangular_solve">(s, b.grad(0), b("A"), upper, !transpose, ones);
      of_b = solved[0];
    }
    {
      const Tensor product = transpose ? matrix_product(b("solution"), adjoint(of_b))
                                       : matrix_product(of_b, adjoint(b("solution")));
      of_a = neg(product);
    }
    of_a = upper ? upper_triangle(of_a, ones) : lower_triangle(of_a, -int64_t{ones});
  }
  if (b.grad(1).defined()) of_a = of_a.defined() ? of_a + b.grad(1) : b.grad(1);
  return {of_a, of_b};
}

void add_triangular(std::vector<Op>& ops) {
  ops.push_back({.schema =
                     "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
                     "unitriangular=False) -> Tensor",
                 .summary = "X of self · X = B, self triangular",
                 .meta = solve_triangular_meta,
                 .kernels = {{DeviceType::cuda, solve_triangular_cuda}},
                 .derivatives = {{{"B", "self"}, {"self", "result"}, solve_triangular_gradients}},
                 .flops = [](const Call& c) -> FlopCount {
                   return {.own = c.result_tensor().numel() * c.tensor("self").size(-1)};
                 },
                 .examples = {"f32[3,3] f32[3,2] True"}});
  ops.push_back({.schema =
                     "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
                     "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
                 .summary = "X of A · X = self, A triangular",
                 .meta = triangular_solve_meta,
                 .kernels = {{DeviceType::cuda, triangular_solve_cuda}},
                 .derivatives = {{{"A", "self"}, {"A", "self", "solution"}, triangular_solve_gradients}},
                 .flops = cubic_flops<1>,
                 .examples = {"f32[3,2] f32[3,3]"}});
}

// --- systems by LU

void lu_solve_meta(Call& c) {
  const Tensor &lu = c.tensor("LU"), &b = c.tensor("B");
  check_square(c, lu);
  const Sizes sizes = with_batch(broadcast(batch_of(lu), batch_of(b)), {b.size(-2), b.size(-1)});
  c.output(sizes, column_major(sizes), b.dtype());
}

void solve_with_factors(Call& c, int64_t matrices) {
  const Tensor of_lu = pointers(c, matrices), of_b = pointers(c, matrices);
}

void lu_solve_cuda(Call& c) {
  c.allocate(0);
  if (c.result_tensor().numel() > 0) solve_with_factors(c, numel(batch_of(c.result_tensor())));
}

Gradients lu_solve_b_gradient(Backward& b) {
  return {Tensor(
      call<"linalg_lu_solve">(b.session, b("LU"), b("pivots"), b.grad(), b["left"], !b.boolean("adjoint")))};
}

// FunctionsManual.cpp, linalg_lu_solve_LU.
Gradients lu_solve_lu_gradient(Backward& b) {
  const bool left = b.boolean("left"), adj = b.boolean("adjoint");
  const Tensor& x = b("result");
  const Results parts = call<"lu_unpack">(b.session, b("LU"), b("pivots"), true, left == adj);
  const Tensor p = parts[0], l = parts[1], u = parts[2];
  Tensor inner;
  if (left != adj) {
    {
      const Tensor product = matrix_product(left ? b.grad() : adjoint(b.grad()), left ? adjoint(x) : x);
      const Tensor negative = neg(product);
      inner = solve_triangular(adjoint(u), negative, false);
    }
    Tensor low;
    {
      const Tensor product = matrix_product(inner, adjoint(u));
      const Tensor of_l = solve_triangular(adjoint(l), product, true, true, true);
      low = lower_triangle(of_l, -1);
    }
    return {low + upper_triangle(inner)};
  }
  Tensor negative;
  {
    const Tensor right = matrix_product(transposed(p), left ? x : adjoint(x));
    const Tensor middle = matrix_product(right, left ? adjoint(b.grad()) : b.grad());
    const Tensor all = matrix_product(middle, p);
    negative = neg(all);
  }
  inner = solve_triangular(adjoint(l), negative, true, false, true);
  negative.reset();
  Tensor high;
  {
    const Tensor product = matrix_product(adjoint(l), inner);
    const Tensor of_u = solve_triangular(adjoint(u), product, false, false);
    high = upper_triangle(of_u);
  }
  return {lower_triangle(inner, -1) + high};
}

bool is_vector_case(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 ||
         (a.dim() - 1 == b.dim() && b.sizes() == Sizes(a.sizes().begin(), a.sizes().end() - 1));
}

void solve_ex_meta(Call& c) {
  const Tensor &a = c.tensor("A"), &b = c.tensor("B");
  check_square(c, a);
  if (is_vector_case(a, b)) {
    c.output(with_batch(batch_of(a), {a.size(-1)}), b.dtype());
  } else {
    const Sizes sizes = with_batch(broadcast(batch_of(a), batch_of(b)), {b.size(-2), b.size(-1)});
    c.output(sizes, c.boolean("left") ? column_major(sizes) : contiguous_strides(sizes), b.dtype());
  }
  lu_outputs(c, a);
  c.output(batch_of(a), DType::i32);
}

// A result that does not lie by columns is solved for in a copy.
void solve_ex_cuda(Call& c) {
  c.allocate_all();
  const Tensor& result = c.result_tensor();
  if (result.numel() == 0) return;
  factorise(c, c.tensor("A"), true);
  const bool vector = is_vector_case(c.tensor("A"), c.tensor("B"));
  Tensor copy;
  if (vector) copy = c.temporary(result.sizes(), result.dtype());
  solve_with_factors(c, std::max<int64_t>(1, numel(batch_of(c.tensor("A")))));
}

Gradients solve_gradients(Backward& b) {
  const bool left = b.boolean("left");
  const Tensor& x = b("result");
  const bool vector = x.dim() + 1 == int64_t(b.sizes("A").size());
  const Tensor grad = vector ? unsqueeze(b.grad(), -1) : b.grad();
  const Tensor of_b = call<"linalg_lu_solve">(b.session, b("LU"), b("pivots"), grad, left, true);
  Tensor of_a;
  if (b.wants("A")) {
    const Tensor wide = vector ? unsqueeze(x, -1) : x;
    const Tensor product = left ? matrix_product(of_b, adjoint(wide)) : matrix_product(adjoint(wide), of_b);
    of_a = neg(product);
  }
  return {of_a, vector ? squeeze(of_b, -1) : of_b};
}

void solve_body(Call& c, bool check, const char* name) {
  Results all = call<"_linalg_solve_ex">(c.session, c["A"], c["B"], c["left"], false);
  const Tensor result = all[0], info = all[3];
  all = Results({});
  if (check) check_info(c.session, info, name);
  c.result(result);
  if (!check) c.result(info);
}

// --- inverse

void inv_ex_meta(Call& c) {
  const Tensor& a = c.tensor("A");
  check_square(c, a);
  c.output(a.sizes(), column_major(a.sizes()), a.dtype());
  c.output(batch_of(a), DType::i32);
}

void inv_ex_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  c.allocate_all();
  if (a.numel() == 0) return;
  const Tensor factors = c.temporary(a.sizes(), a.dtype());
  const Tensor pivots = c.temporary(with_batch(batch_of(a), {a.size(-1)}), DType::i32);
  factorise(c, a, true);
  solve_with_factors(c, numel(batch_of(a)));
}

void add_solvers(std::vector<Op>& ops) {
  ops.push_back({.schema = "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
                           "adjoint=False) -> Tensor",
                 .summary = "X of P · L · U · X = B",
                 .meta = lu_solve_meta,
                 .kernels = {{DeviceType::cuda, lu_solve_cuda}},
                 .derivatives = {{{"B"}, {"LU", "pivots"}, lu_solve_b_gradient},
                                 {{"LU"}, {"LU", "pivots", "result"}, lu_solve_lu_gradient}},
                 .flops = [](const Call& c) -> FlopCount {
                   return {.own = 2 * c.result_tensor().numel() * c.tensor("LU").size(-1)};
                 },
                 .examples = {"f32[3,3] i32[3] f32[3,2]"}});
  ops.push_back({.schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
                 .summary = "X of P · L · U · X = self",
                 .meta = composite([](Call& c) {
                   c.result(
                       Tensor(call<"linalg_lu_solve">(c.session, c["LU_data"], c["LU_pivots"], c["self"])));
                 }),
                 .kernels = {},
                 .derivatives = by_body,
                 .flops = by_body,
                 .examples = {"f32[3,2] f32[3,3] i32[3]"}});
  ops.push_back({.schema =
                     "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
                     "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
                 .summary = "X of A · X = B",
                 .meta = solve_ex_meta,
                 .kernels = {{DeviceType::cuda, solve_ex_cuda}},
                 .derivatives = {{{"A", "B"}, {"A", "LU", "pivots", "result"}, solve_gradients}},
                 .flops = cubic_flops<1>,
                 .examples = {"f32[3,3] f32[3,2]", "f32[3,3] f32[3]"},
                 .facts = {.node = "LinalgSolveExBackward0", .no_gradient_for = 14}});
  ops.push_back(composed(
      "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
      "result, Tensor info)",
      "X of A · X = B", [](Call& c) { solve_body(c, false, ""); }, "f32[3,3] f32[3,2]"));
  ops.push_back(composed(
      "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", "X of A · X = B",
      [](Call& c) { solve_body(c, true, "torch.linalg.solve"); }, "f32[3,3] f32[3,2]"));
  ops.push_back(
      {.schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
       .summary = "A⁻¹",
       .meta = inv_ex_meta,
       .kernels = {{DeviceType::cuda, inv_ex_cuda}},
       .derivatives = {{{"A"},
                        {"inverse"},
                        [](Backward& b) -> Gradients {
                          const Tensor& inverse = b("inverse");
                          const Tensor right = matrix_product(b.grad(), adjoint(inverse));
                          const Tensor both = matrix_product(adjoint(inverse), right);
                          return {neg(both)};
                        }}},
       .flops = cubic_flops<2>,
       .examples = {"f32[3,3]"},
       .facts = {.no_gradient_for = 2}});
  ops.push_back(composed(
      "linalg_inv(Tensor A) -> Tensor", "A⁻¹",
      [](Call& c) {
        Results all = call<"linalg_inv_ex">(c.session, c["A"], false);
        check_info(c.session, all[1], "linalg.inv");
        c.result(all[0]);
      },
      "f32[3,3]"));
}

}  // namespace

void add_linear_solver_operators(std::vector<Op>& ops) {
  ops.push_back({.schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
                 .summary = "an error where some factorisation failed",
                 .meta = composite([](Call& c) {
                   const Tensor failed = call<"any">(c.session, c["info"]);
                   call<"item">(c.session, failed);
                 }),
                 .kernels = {},
                 .derivatives = not_differentiable,
                 .flops = by_body,
                 .examples = {"i32[] \"name\" True"},
                 .facts = {.cudagraph_unsafe = true, .reads_data = true}});
  add_cholesky(ops);
  add_lu(ops);
  add_triangular(ops);
  add_solvers(ops);
}

}  // namespace metaprof
