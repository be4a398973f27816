// Solutions of systems in the sense of least squares (native/BatchLinearAlgebra.cpp, linalg_lstsq_out;
// native/cuda/linalg/BatchLinearAlgebra.cpp, lstsq_kernel; FunctionsManual.cpp, linalg_lstsq_backward; recorded:
// `opinfo/linalg.lstsq`).

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/estimated.h"

namespace metaprof {
namespace {

struct Problem {
  Tensor a, b;
  int64_t rows, columns, solutions;
  Sizes batch;
  bool vector;

  Problem(const Tensor& a, const Tensor& b)
      : a(a), b(b), rows(a.size(-2)), columns(a.size(-1)), solutions(1), vector(is_vector_case(a, b)) {
    if (!vector) solutions = b.size(-1);
    batch = broadcast(batch_of(a), without_last(b.sizes(), vector ? 1 : 2));
  }
  /// What the library writes: right-hand sides, then solutions, by columns.
  Sizes written() const { return with_batch(batch, {std::max(rows, columns), solutions}); }
};

std::string_view driver_of(const Call& c) {
  if (c.given("driver")) return c["driver"].string();
  return c.on_cuda() ? "gels" : "gelsy";
}

void lstsq_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &b = c.tensor("b");
  if (self.dim() < 2 || b.dim() < 1)
    c.error(fmt::format("expects matrices, got {} and {}", describe(self), describe(b)));
  const Problem p(self, b);
  if (b.size(p.vector ? -1 : -2) != p.rows)
    c.error(fmt::format("expects as many rows on both sides, got {} and {}", describe(self), describe(b)));
  const std::string_view driver = driver_of(c);
  const Sizes strides = column_major(p.written());
  Sizes sizes = with_batch(p.batch, {p.columns});
  if (!p.vector) sizes.push_back(p.solutions);
  c.output(sizes, SizesView(strides).first(sizes.size()), self.dtype());
  const bool residuals = p.rows > p.columns && driver != "gelsy";
  c.output(residuals ? with_batch(p.batch, {p.solutions}) : Sizes{0}, real_type(self.dtype()));
  c.output(driver == "gels" ? Sizes{0} : p.batch, DType::i64);
  const bool values = driver == "gelsd" || driver == "gelss";
  c.output(values ? with_batch(p.batch, {std::min(p.rows, p.columns)}) : Sizes{0}, real_type(self.dtype()));
}

// What cuSOLVER itself takes is known to it alone.
void by_reflectors(Call& c, const Problem& p, const Tensor& written) {
  const auto info = [&] { c.temporary(Sizes{1}, DType::i32); };
  const auto factor = [&](const Tensor& a) {
    if (!reflect_by_cublas(c, a)) info();
  };
  const Tensor scales = c.temporary(with_batch(p.batch, {std::min(p.rows, p.columns)}), p.a.dtype());
  estimated(c.session, c.session.allocate(c.device(), 0, Category::workspace));
  if (p.rows < p.columns) {
    const Tensor transposed = c.temporary(with_batch(p.batch, {p.columns, p.rows}), p.a.dtype());
    factor(transposed);
    solve_triangles(c, transposed, written);
    info();
  } else {
    factor(p.a);
    info();
    solve_triangles(c, p.a, written);
  }
}

// Several systems that are not larger than 256 rows are one call of cuBLAS.
void by_cublas(Call& c, const Problem& p) {
  const Tensor copy = c.temporary(with_batch(p.batch, {p.rows, p.columns}), p.a.dtype());
  solve_by_lists(c, copy, copy);
}

void lstsq_cuda(Call& c) {
  if (c.given("driver") && c["driver"].string() != "gels") c.error("on a GPU the driver is gels");
  const Problem p(c.tensor("self"), c.tensor("b"));
  const int64_t matrices = numel(p.batch);
  const Tensor infos = c.temporary(Sizes{std::max<int64_t>(1, matrices)}, DType::i32);
  const Sizes written = p.written();
  const Tensor all = c.temporary(written, column_major(written), p.a.dtype());
  c.results[0].tensor()->storage = all->storage;
  {
    const Tensor work = c.temporary(with_batch(p.batch, {p.rows, p.columns}), p.a.dtype());
    const bool listed = p.rows >= p.columns && p.rows <= 256 && matrices >= std::max<int64_t>(2, p.rows / 16);
    listed ? by_cublas(c, p) : by_reflectors(c, p, all);
    if (c.result_tensor(1).numel() > 0)
      c.adopt(1, sum(narrow(all, -2, p.columns, p.rows - p.columns), Sizes{-2}, false));
  }
  c.allocate_all();
  check_info(c.session, infos, "torch.linalg.lstsq");
}

Tensor as_matrix(const Tensor& vectors, bool vector) { return vector ? unsqueeze(vectors, -1) : vectors; }

Gradients lstsq_gradients(Backward& b) {
  const Tensor& a = b("self");
  const bool vector = is_vector_case(a, b("b"));
  const Tensor right = as_matrix(b("b"), vector), solution = as_matrix(b("solution"), vector);
  const Tensor &of_solution = b.grad(0), &of_residuals = b.grad(1);
  Session& s = b.session;
  Tensor of_a, of_b;
  if (of_solution.defined()) {
    const Tensor grad = as_matrix(of_solution, vector);
    const Tensor inverse = call<"linalg_pinv.atol_rtol_float">(s, a);
    if (b.wants("self")) {
      const Tensor of_inverse = matmul(grad, mH(right));
      of_a = pseudo_inverse_gradient(of_inverse, inverse, a);
    }
    if (b.wants("b")) of_b = matmul(mH(inverse), grad);
  }
  if (!of_residuals.defined() || of_residuals.numel() == 0)
    return {of_a, vector && of_b.defined() ? squeeze(of_b, -1) : of_b};
  Tensor left_over;
  {
    const Tensor product = matmul(a, solution);
    left_over = product - right;
  }
  const Tensor wide = unsqueeze(of_residuals, -2);
  Tensor all_of_a = of_a, all_of_b = of_b;
  if (b.wants("self")) {
    Tensor twice;
    {
      const Tensor weighted = wide * left_over, onto = matmul(weighted, mH(solution));
      twice = onto * Number(2);
    }
    all_of_a = of_a.defined() ? of_a + twice : twice;
  }
  if (b.wants("b")) {
    Tensor weighted;
    {
      const Tensor twice = wide * Number(2);
      weighted = twice * left_over;
    }
    all_of_b = of_b.defined() ? of_b - weighted : neg(weighted);
  }
  return {all_of_a, vector && all_of_b.defined() ? squeeze(all_of_b, -1) : all_of_b};
}

constexpr Op kLeastSquares[] = {
    {.schema = "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor "
               "solution, Tensor residuals, Tensor rank, Tensor singular_values)",
     .summary = "X with the least |self · X − b|",
     .meta = lstsq_meta,
     .host_code = {{DeviceType::cuda, lstsq_cuda}},
     .derivatives = {{{"self", "b"}, {"b", "self", "solution"}, lstsq_gradients}},
     .flops = cubic_flops<2>,
     .examples = {"f32[5,3] f32[5,2]", "f32[3,5] f32[3,2]", "f32[2,4,3] f32[2,4]"},
     .facts = {.host_reads = true, .no_gradient_for = {"rank", "singular_values"}}}};

}  // namespace

Tables least_squares_operators() {
  static constexpr Records tables[] = {kLeastSquares};
  return tables;
}

}  // namespace metaprof
