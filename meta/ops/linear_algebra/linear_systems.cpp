// Systems of equations and inverses (aten/src/ATen/native/BatchLinearAlgebra.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
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

void solve_by_lists(Call& c, const Tensor& a, const Tensor& b) {
  const int64_t matrices = numel(batch_of(b));
  const Tensor of_a = pointers(c, a.numel() == 0 ? 0 : matrices),
               of_b = pointers(c, b.numel() == 0 ? 0 : matrices);
  cublas_workspace(c);
}

// triangular_solve_kernel (cuda/linalg/BatchLinearAlgebra.cpp): up to eight large matrices are solved one after the
// other, and MAGMA solves many that are larger still.
void solve_triangles(Call& c, const Tensor& a, const Tensor& b) {
  const int64_t n = a.size(-1);
  const bool one_by_one = numel(batch_of(b)) <= 8 && n >= 64;
  if (!one_by_one && n <= 512) return solve_by_lists(c, a, b);
  if (one_by_one) cublas_workspace(c);
}

namespace {

// A matrix that lies neither by columns nor by rows is copied.
void solve_triangular_cuda(Call& c) {
  const Tensor& a = c.tensor("self");
  c.allocate(0);
  Tensor copy;
  if (!is_column_major(a) && !a.is_contiguous()) copy = c.contiguous(mT(a));
  solve_triangles(c, a, c.result_tensor());
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
  solve_triangles(c, c.tensor("A"), c.result_tensor());
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
     .facts = {.takes = "self.dim >= 2, B.dim >= 2", .reads_marks = kConjugated | kNegated}},
    {.schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
               "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     .summary = "X of A · X = self, A triangular",
     .meta = triangular_solve_meta,
     .host_code = {{DeviceType::cuda, triangular_solve_cuda}},
     .derivatives = {{{"A", "self"}, {"A", "self", "solution"}, triangular_solve_gradients}},
     .flops = cubic_flops<1>,
     .examples = {"f32[3,2] f32[3,3]", "f32[3,2] f32[3,3] False True"},
     .facts = {.takes = "self.dim >= 2, A.dim >= 2"}}};

// --- systems by LU

void lu_solve_meta(Call& c) {
  const Tensor &lu = c.tensor("LU"), &b = c.tensor("B");
  check_square(c, lu);
  const Sizes sizes = with_batch(broadcast(batch_of(lu), batch_of(b)), {b.size(-2), b.size(-1)});
  c.output(sizes, c.boolean("left") ? column_major(sizes) : contiguous_strides(sizes), b.dtype());
}

// What solves systems whose matrices are factorised, by lu_solve_kernel (cuda/linalg/BatchLinearAlgebra.cpp).
enum class Solver : uint8_t { lists_by_cublas, one_by_one, two_triangles, magma };
enum class Magma : uint8_t { for_many_right_sides, never };  ///< before 2.12, and since

Solver solver_of(int64_t matrices, int64_t n, int64_t right_sides, bool transposed, Magma magma) {
  if (n == right_sides) return n <= 16 ? Solver::lists_by_cublas : Solver::two_triangles;
  if (n <= 8) {
    const bool many = right_sides >= 256 && right_sides <= 1024;
    return many && !transposed && magma != Magma::never ? Solver::magma : Solver::lists_by_cublas;
  }
  if (n > 128) return Solver::two_triangles;
  const bool few = n <= 64 ? right_sides <= 64 || transposed || n <= 32 : right_sides <= 2;
  if (matrices <= 2 && few) return Solver::one_by_one;
  return right_sides <= (n <= 64 ? 8 : 2) ? Solver::lists_by_cublas : Solver::two_triangles;
}

// Its lambda lu_solve_triangular: the rows' order as numbers, by which the right sides are put in order before or after.
void solve_two_triangles(Call& c, const Tensor& lu, const Tensor& b, bool transposed) {
  const int64_t n = lu.size(-1), matrices = numel(batch_of(b));
  const auto places = [&](int64_t rows) { return c.temporary(Sizes{rows * n}, DType::i64); };
  Tensor order = places(1);
  if (matrices > 1) order = places(matrices);
  if (transposed) {
    solve_triangles(c, lu, b);
    solve_triangles(c, lu, b);
    const Tensor copy = c.temporary(b.sizes(), b.dtype());
    return;
  }
  const Tensor range = places(1), inverse = places(matrices), ordered = c.temporary(b.sizes(), b.dtype());
  solve_triangles(c, lu, b);
  solve_triangles(c, lu, b);
}

// `b`: right sides, as columns. Factors that all right sides of a batch share are repeated.
void solve_with_factors(Call& c, const Tensor& lu, const Tensor& b, bool transposed, Magma magma) {
  const int64_t n = lu.size(-1), matrices = numel(batch_of(b));
  const Solver solver = solver_of(matrices, n, b.size(-1), transposed, magma);
  if (solver == Solver::one_by_one) {
    const Tensor info = c.temporary(Sizes{1}, DType::i32);
    return;
  }
  Tensor factors, pivots;
  if (numel(batch_of(lu)) != matrices) {
    factors = c.temporary(with_batch(batch_of(b), {n, n}), lu.dtype());
    pivots = c.temporary(with_batch(batch_of(b), {n}), DType::i32);
  }
  if (solver == Solver::magma) return;
  if (solver == Solver::two_triangles) return solve_two_triangles(c, lu, b, transposed);
  solve_by_lists(c, lu, b);
}

template <Magma magma>
void lu_solve_cuda(Call& c) {
  c.allocate(0);
  const Tensor& x = c.result_tensor();
  if (x.numel() == 0) return;
  const bool left = c.boolean("left");
  solve_with_factors(c, c.tensor("LU"), left ? x : mT(x), left == c.boolean("adjoint"), magma);
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
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == without_last(a.sizes(), 1));
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

// Of which matrix the factors are: before 2.11 of Aᵀ where A is contiguous, which lies by columns then.
enum class Factorised : uint8_t { transpose_if_by_columns, itself };

bool is_transposed(const Tensor& a, Factorised factorised) {
  return factorised == Factorised::transpose_if_by_columns && factors_transpose(a);
}

// A result that does not lie by columns is solved for in a copy.
template <Factorised factorised, Magma magma>
void solve_ex_cuda(Call& c) {
  c.allocate_all();
  const Tensor& result = c.result_tensor();
  if (result.numel() == 0) return;
  factorise(c, c.tensor("A"));
  const bool vector = is_vector_case(c.tensor("A"), c.tensor("B"));
  Tensor copy;
  if (vector) copy = c.temporary(result.sizes(), result.dtype());
  const bool left = c.boolean("left");
  const Tensor columns = vector ? unsqueeze(result, -1) : left ? result : mT(result);
  const bool transposed = left == is_transposed(c.tensor("A"), factorised);
  solve_with_factors(c, c.result_tensor(1), columns, transposed, magma);
}

template <Factorised factorised>
Gradients solve_gradients(Backward& b) {
  const bool left = b.boolean("left");
  const Tensor& x = b("result");
  const bool vector = x.dim() + 1 == int64_t(b.sizes("A").size());
  const Tensor grad = vector ? unsqueeze(b.grad(), -1) : b.grad();
  Tensor of_b;
  if (b.session.modes.grad) {  // a second derivative needs the factorisation as a function of A
    of_b = call<"linalg_solve">(b.session, mH(b("A")), grad, left);
  } else {
    const bool adjoint = !is_transposed(b("A"), factorised);
    of_b = call<"linalg_lu_solve">(b.session, b("LU"), b("pivots"), grad, left, adjoint);
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

template <Factorised factorised>
void inv_ex_cuda(Call& c) {
  const Tensor& a = c.tensor("A");
  c.allocate_all();
  if (a.numel() == 0) return;
  const Tensor factors = c.temporary(a.sizes(), a.dtype());
  const Tensor pivots = c.temporary(with_batch(batch_of(a), {a.size(-1)}), DType::i32);
  factorise(c, a);
  solve_with_factors(c, factors, c.result_tensor(), is_transposed(a, factorised), Magma::never);
}

constexpr Op lu_solve(void (*kernel)(Call&)) {
  return {.schema =
              "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
              "Tensor",
          .summary = "X of P · L · U · X = B",
          .meta = lu_solve_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"B"}, {"LU", "pivots"}, lu_solve_b_gradient},
                          {{"LU"}, {"LU", "pivots", "result"}, lu_solve_lu_gradient}},
          .flops = [](const Call& c) -> FlopCount {
            return {.own = 2 * c.result_tensor().numel() * c.tensor("LU").size(-1)};
          },
          .examples = {"f32[3,3] i32[3] f32[3,2]", "f32[3,3] i32[3] f32[2,3] False",
                       "f32[3,3] i32[3] f32[3,2] True True", "f32[3,3] i32[3] f32[2,3] False True"}};
}

constexpr Op solve_ex(void (*kernel)(Call&), Formula gradients) {
  return {.schema =
              "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
              "result, Tensor LU, Tensor pivots, Tensor info)",
          .summary = "X of A · X = B",
          .meta = solve_ex_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"A", "B"}, {"A", "LU", "pivots", "result"}, gradients}},
          .flops = cubic_flops<1>,
          .examples = {"f32[3,3] f32[3,2]", "f32[3,3] f32[3]", "f32[2,3,3] f32[2,2,3] False"},
          .facts = {.node = "LinalgSolveExBackward0", .no_gradient_for = {"LU", "pivots", "info"}}};
}

// FunctionsManual.cpp: −A⁻ᴴ · gradient · A⁻ᴴ.
Gradients inv_gradient(Backward& b) {
  const Tensor& inverse = b("inverse");
  const Tensor right = matmul(b.grad(), mH(inverse));
  const Tensor both = matmul(mH(inverse), right);
  return {neg(both)};
}

constexpr Op inv_ex(void (*kernel)(Call&)) {
  return {.schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
          .summary = "A⁻¹",
          .meta = inv_ex_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"A"}, {"inverse"}, inv_gradient}},
          .flops = cubic_flops<2>,
          .examples = {"f32[3,3]", "f32[2,3,3]"},
          .facts = {.no_gradient_for = {"info"}}};
}

constexpr auto kOfTranspose = Factorised::transpose_if_by_columns, kOfItself = Factorised::itself;
constexpr auto kMagma = Magma::for_many_right_sides, kNoMagma = Magma::never;

constexpr Op kSolvers[] = {
    before({2, 12}, lu_solve(lu_solve_cuda<kMagma>)),
    since({2, 12}, lu_solve(lu_solve_cuda<kNoMagma>)),
    {.schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     .summary = "X of P · L · U · X = self",
     .meta = composite([](Call& c) {
       c.result(call<"linalg_lu_solve">(c.session, c["LU_data"], c["LU_pivots"], c["self"]));
     }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[3,2] f32[3,3] i32[3]"}},
    before({2, 11}, solve_ex(solve_ex_cuda<kOfTranspose, kMagma>, solve_gradients<kOfTranspose>)),
    since({2, 11}, before({2, 12}, solve_ex(solve_ex_cuda<kOfItself, kMagma>, solve_gradients<kOfItself>))),
    since({2, 12}, solve_ex(solve_ex_cuda<kOfItself, kNoMagma>, solve_gradients<kOfItself>)),
    composite_of("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
                 "result, Tensor info)",
                 "X of A · X = B", [](Call& c) { solve_body(c, false, ""); }, {"f32[3,3] f32[3,2]"}),
    composite_of("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", "X of A · X = B",
                 [](Call& c) { solve_body(c, true, "torch.linalg.solve"); }, {"f32[3,3] f32[3,2]"}),
    before({2, 11}, inv_ex(inv_ex_cuda<kOfTranspose>)),
    since({2, 11}, inv_ex(inv_ex_cuda<kOfItself>)),
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
