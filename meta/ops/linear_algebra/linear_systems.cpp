// Systems of equations and inverses (aten/src/ATen/native/BatchLinearAlgebra.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"

namespace metaprof {

namespace {

// --- triangular systems

void solve_triangular_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("B");
  check_square(c, a);
  const Sizes batch = broadcast(batch_of(a), batch_of(b));
  const Sizes sizes = with_batch(batch, {b.size(-2), b.size(-1)});
  c.output(sizes, column_major(sizes), b.dtype());
}

}  // namespace

// cuBLAS takes lists of pointers to both matrices.
void solve_by_cublas(Call& c, const Tensor& a, const Tensor& b) {
  const int64_t matrices = numel(batch_of(b));
  const Tensor of_a = pointers(c, a.numel() == 0 ? 0 : matrices),
               of_b = pointers(c, b.numel() == 0 ? 0 : matrices);
  cublas_workspace(c);
}

namespace {

// A matrix that lies neither by columns nor by rows is copied.
void solve_triangular_cuda(Call& c) {
  const Tensor& a = c.tensor("self");
  c.allocate(0);
  Tensor copy;
  if (!is_column_major(a) && !a.is_contiguous()) copy = c.contiguous(mT(a));
  solve_by_cublas(c, a, c.result_tensor());
}

Gradients solve_triangular_gradients(Backward& b) {
  const bool upper = b.boolean("upper"), left = b.boolean("left"), ones = b.boolean("unitriangular");
  const Tensor &a = b("self"), &result = b("result");
  const Tensor of_b = solve_triangular(mH(a), b.grad(), !upper, left, ones);
  if (!b.wants("self")) return {of_b, Tensor()};
  Tensor of_a;
  {
    const Tensor product = left ? matmul(of_b, mH(result)) : matmul(mH(result), of_b);
    of_a = neg(product);
  }
  of_a = upper ? triu(of_a, ones) : tril(of_a, -int64_t{ones});
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
  solve_by_cublas(c, c.tensor("A"), c.result_tensor());
}

Gradients triangular_solve_gradients(Backward& b) {
  Session& s = b.session;
  const bool upper = b.boolean("upper"), transpose = b.boolean("transpose"),
             ones = b.boolean("unitriangular");
  Tensor of_a, of_b;
  if (b.grad(0).defined()) {
    {
      Results solved = call_all<"triangular_solve">(s, b.grad(0), b("A"), upper, !transpose, ones);
      of_b = solved[0];
    }
    {
      const Tensor product = transpose ? matmul(b("solution"), mH(of_b)) : matmul(of_b, mH(b("solution")));
      of_a = neg(product);
    }
    of_a = upper ? triu(of_a, ones) : tril(of_a, -int64_t{ones});
  }
  if (b.grad(1).defined()) of_a = of_a.defined() ? of_a + b.grad(1) : b.grad(1);
  return {of_a, of_b};
}

constexpr Op kTriangular[] = {
    {.schema = "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
               "unitriangular=False) -> Tensor",
     .summary = "X of self · X = B, self triangular",
     .meta = solve_triangular_meta,
     .host_code = {{DeviceType::cuda, solve_triangular_cuda}},
     .derivatives = {{{"B", "self"}, {"self", "result"}, solve_triangular_gradients}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = c.result_tensor().numel() * c.tensor("self").size(-1)};
     },
     .examples = {"f32[3,3] f32[3,2] True", "f32[3,3] f32[2,3] False False",
                  "f32[2,3,3] f32[2,3,2] True True True"},
     .facts = {.reads_marks = kConjugated | kNegated}},
    {.schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
               "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     .summary = "X of A · X = self, A triangular",
     .meta = triangular_solve_meta,
     .host_code = {{DeviceType::cuda, triangular_solve_cuda}},
     .derivatives = {{{"A", "self"}, {"A", "self", "solution"}, triangular_solve_gradients}},
     .flops = cubic_flops<1>,
     .examples = {"f32[3,2] f32[3,3]", "f32[3,2] f32[3,3] False True"}}};

// --- systems by LU

void lu_solve_meta(Call& c) {
  const Tensor &lu = c.tensor("LU"), &b = c.tensor("B");
  check_square(c, lu);
  const Sizes sizes = with_batch(broadcast(batch_of(lu), batch_of(b)), {b.size(-2), b.size(-1)});
  c.output(sizes, c.boolean("left") ? column_major(sizes) : contiguous_strides(sizes), b.dtype());
}

// lu_solve_kernel (aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp): up to two matrices with few
// right sides are solved one after the other (recorded: 12×12 with one right side; 6×6 are not).
bool one_by_one(int64_t matrices, int64_t n, int64_t right_sides) {
  if (matrices > 2 || n == right_sides || n <= 8 || n > 128) return false;
  return n <= 32 || (n <= 64 && right_sides <= 64) || right_sides <= 2;
}

void solve_with_factors(Call& c, int64_t matrices, int64_t n, int64_t right_sides) {
  if (one_by_one(matrices, n, right_sides)) {
    const Tensor info = c.temporary(Sizes{1}, DType::i32);
    return;
  }
  const Tensor of_lu = pointers(c, matrices), of_b = pointers(c, matrices);
  cublas_workspace(c);
}

void lu_solve_cuda(Call& c) {
  c.allocate(0);
  const Tensor& x = c.result_tensor();
  if (x.numel() == 0) return;
  const int64_t n = c.tensor("LU").size(-1);
  solve_with_factors(c, numel(batch_of(x)), n, x.size(c.boolean("left") ? -1 : -2));
}

Gradients lu_solve_b_gradient(Backward& b) {
  return {Tensor(
      call<"linalg_lu_solve">(b.session, b("LU"), b("pivots"), b.grad(), b["left"], !b.boolean("adjoint")))};
}

// FunctionsManual.cpp, linalg_lu_solve_LU.
Gradients lu_solve_lu_gradient(Backward& b) {
  const bool left = b.boolean("left"), adj = b.boolean("adjoint");
  const Tensor& x = b("result");
  const Results parts = call_all<"lu_unpack">(b.session, b("LU"), b("pivots"), true, left == adj);
  const Tensor p = parts[0], l = parts[1], u = parts[2];
  Tensor inner;
  if (left != adj) {
    {
      const Tensor product = matmul(left ? b.grad() : mH(b.grad()), left ? mH(x) : x);
      const Tensor negative = neg(product);
      inner = solve_triangular(mH(u), negative, false);
    }
    Tensor low;
    {
      const Tensor product = matmul(inner, mH(u));
      const Tensor of_l = solve_triangular(mH(l), product, true, true, true);
      low = tril(of_l, -1);
    }
    return {low + triu(inner)};
  }
  Tensor negative;
  {
    const Tensor right = matmul(mT(p), left ? x : mH(x));
    const Tensor middle = matmul(right, left ? mH(b.grad()) : b.grad());
    const Tensor all = matmul(middle, p);
    negative = neg(all);
  }
  inner = solve_triangular(mH(l), negative, true, false, true);
  negative.reset();
  Tensor high;
  {
    const Tensor product = matmul(mH(l), inner);
    const Tensor of_u = solve_triangular(mH(u), product, false, false);
    high = triu(of_u);
  }
  return {tril(inner, -1) + high};
}

}  // namespace

bool is_vector_case(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 ||
         (a.dim() - 1 == b.dim() && b.sizes() == Sizes(a.sizes().begin(), a.sizes().end() - 1));
}

namespace {

void solve_ex_meta(Call& c) {
  const Tensor &a = c.tensor("A"), &b = c.tensor("B");
  check_square(c, a);
  if (is_vector_case(a, b)) {  // its last two dimensions lie like those of a matrix
    const Sizes sizes = with_batch(batch_of(a), {a.size(-1)});
    const bool by_columns = c.boolean("left") && sizes.size() > 1;
    c.output(sizes, by_columns ? column_major(sizes) : contiguous_strides(sizes), b.dtype());
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
  factorise(c, c.tensor("A"));
  const bool vector = is_vector_case(c.tensor("A"), c.tensor("B"));
  Tensor copy;
  if (vector) copy = c.temporary(result.sizes(), result.dtype());
  const int64_t n = c.tensor("A").size(-1);
  const int64_t right_sides = vector ? 1 : result.size(c.boolean("left") ? -1 : -2);
  solve_with_factors(c, std::max<int64_t>(1, numel(batch_of(c.tensor("A")))), n, right_sides);
}

Gradients solve_gradients(Backward& b) {
  const bool left = b.boolean("left");
  const Tensor& x = b("result");
  const bool vector = x.dim() + 1 == int64_t(b.sizes("A").size());
  const Tensor grad = vector ? unsqueeze(b.grad(), -1) : b.grad();
  Tensor of_b;
  if (b.session.modes.grad) {  // a second derivative needs the factorisation as a function of A
    of_b = call<"linalg_solve">(b.session, mH(b("A")), grad, left);
  } else {
    of_b = call<"linalg_lu_solve">(b.session, b("LU"), b("pivots"), grad, left, !factors_transpose(b("A")));
  }
  Tensor of_a;
  if (b.wants("A")) {
    const Tensor wide = vector ? unsqueeze(x, -1) : x;
    const Tensor product = left ? matmul(of_b, mH(wide)) : matmul(mH(wide), of_b);
    of_a = neg(product);
  }
  return {of_a, vector && b.wants("B") ? squeeze(of_b, -1) : of_b};
}

void solve_body(Call& c, bool check, const char* name) {
  Results all = call_all<"_linalg_solve_ex">(c.session, c["A"], c["B"], c["left"], false);
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
  factorise(c, a);
  solve_with_factors(c, numel(batch_of(a)), a.size(-1), a.size(-1));
}

constexpr Op kSolvers[] = {
    {.schema = "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
               "adjoint=False) -> Tensor",
     .summary = "X of P · L · U · X = B",
     .meta = lu_solve_meta,
     .host_code = {{DeviceType::cuda, lu_solve_cuda}},
     .derivatives = {{{"B"}, {"LU", "pivots"}, lu_solve_b_gradient},
                     {{"LU"}, {"LU", "pivots", "result"}, lu_solve_lu_gradient}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 2 * c.result_tensor().numel() * c.tensor("LU").size(-1)};
     },
     .examples = {"f32[3,3] i32[3] f32[3,2]", "f32[3,3] i32[3] f32[2,3] False",
                  "f32[3,3] i32[3] f32[3,2] True True", "f32[3,3] i32[3] f32[2,3] False True"}},
    {.schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     .summary = "X of P · L · U · X = self",
     .meta = composite([](Call& c) {
       c.result(call<"linalg_lu_solve">(c.session, c["LU_data"], c["LU_pivots"], c["self"]));
     }),
     .host_code = {},
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[3,2] f32[3,3] i32[3]"}},
    {.schema = "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
               "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
     .summary = "X of A · X = B",
     .meta = solve_ex_meta,
     .host_code = {{DeviceType::cuda, solve_ex_cuda}},
     .derivatives = {{{"A", "B"}, {"A", "LU", "pivots", "result"}, solve_gradients}},
     .flops = cubic_flops<1>,
     .examples = {"f32[3,3] f32[3,2]", "f32[3,3] f32[3]", "f32[2,3,3] f32[2,2,3] False"},
     .facts = {.node = "LinalgSolveExBackward0", .no_gradient_for = {"LU", "pivots", "info"}}},
    composite_of("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
                 "result, Tensor info)",
                 "X of A · X = B", [](Call& c) { solve_body(c, false, ""); }, {"f32[3,3] f32[3,2]"}),
    composite_of("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", "X of A · X = B",
                 [](Call& c) { solve_body(c, true, "torch.linalg.solve"); }, {"f32[3,3] f32[3,2]"}),
    {.schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     .summary = "A⁻¹",
     .meta = inv_ex_meta,
     .host_code = {{DeviceType::cuda, inv_ex_cuda}},
     .derivatives = {{{"A"},
                      {"inverse"},
                      [](Backward& b) -> Gradients {
                        const Tensor& inverse = b("inverse");
                        const Tensor right = matmul(b.grad(), mH(inverse));
                        const Tensor both = matmul(mH(inverse), right);
                        return {neg(both)};
                      }}},
     .flops = cubic_flops<2>,
     .examples = {"f32[3,3]", "f32[2,3,3]"},
     .facts = {.no_gradient_for = {"info"}}},
    composite_of("linalg_inv(Tensor A) -> Tensor", "A⁻¹",
                 [](Call& c) {
                   Results all = call_all<"linalg_inv_ex">(c.session, c["A"], false);
                   check_info(c.session, all[1], "linalg.inv");
                   c.result(all[0]);
                 },
                 {"f32[3,3]"})};

}  // namespace

Tables linear_system_operators() {
  static constexpr Records tables[] = {kTriangular, kSolvers};
  return tables;
}

}  // namespace metaprof
