// What is solved with factors of symmetric matrices, and the factors of LDLᴴ and QR as LAPACK leaves them
// (aten/src/ATen/native/BatchLinearAlgebra.cpp, PyTorch 2.11). As with the other solvers, the libraries' own
// scratch memory is not known.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/library.h"

namespace metaprof {
namespace {

// A single matrix goes to cuSOLVER, which says how it went; several go to MAGMA.
Tensor info_of_one(Call& c, const Tensor& a) {
  return numel(batch_of(a)) == 1 ? c.temporary(Sizes{1}, DType::i32) : Tensor();
}

Sizes solution_sizes(const Call& c, const Tensor& a, const Tensor& b) {
  check_square(c, a);
  if (b.dim() < 2 || b.size(-2) != a.size(-1))
    c.error(fmt::format("expects as many rows as {}, got {}", describe(a), describe(b)));
  return with_batch(broadcast(batch_of(a), batch_of(b)), {b.size(-2), b.size(-1)});
}

void by_columns(Call& c, const Sizes& sizes, DType dtype) { c.output(sizes, column_major(sizes), dtype); }

// --- Cholesky

void cholesky_solve_meta(Call& c) {
  by_columns(c, solution_sizes(c, c.tensor("input2"), c.tensor("self")), c.tensor("self").dtype());
}

// Several matrices go to MAGMA before 2.12. Since then they are two triangular systems, solved in the result
// (recorded: `opinfo/cholesky_solve/9`, `opinfo/cholesky_inverse/11`).
bool two_triangular_systems(Call& c, const Tensor& factor) {
  if (numel(batch_of(c.result_tensor())) == 1) return false;
  for (int system = 0; system < 2; ++system) solve_triangles(c, factor, c.result_tensor());
  return true;
}

Tensor copy_of_factor(Call& c) {
  Sizes sizes = batch_of(c.result_tensor());
  sizes.append(c.tensor("input2").sizes().end() - 2, c.tensor("input2").sizes().end());
  return c.temporary(sizes, c.tensor("input2").dtype());
}

void cholesky_solve_cuda_since_12(Call& c) {
  c.allocate(0);
  if (two_triangular_systems(c, c.tensor("input2"))) return;
  const Tensor info = info_of_one(c, c.result_tensor()), factor = copy_of_factor(c);
}

void cholesky_solve_cuda(Call& c) {
  const Tensor info = info_of_one(c, c.result_tensor());
  c.allocate(0);
  const Tensor factor = copy_of_factor(c);
}

// FunctionsManual.cpp, cholesky_solve_backward. The framework saves self as well, which it does not need.
Gradients cholesky_solve_gradients(Backward& b) {
  const Tensor& factor = b("input2");
  const Tensor of_self = call<"cholesky_solve">(b.session, b.grad(), factor, b["upper"]);
  if (!b.wants("input2")) return {of_self, Tensor()};
  Tensor both = matmul(of_self, mH(b("result")));
  both = both + mH(both);
  const Tensor product = b.boolean("upper") ? matmul(factor, both) : matmul(both, factor);
  return {b.wants("self") ? of_self : Tensor(), neg(product)};
}

void square_by_columns_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  check_square(c, self);
  by_columns(c, self.sizes(), self.dtype());
}

// The result is overwritten with ones on the diagonal, for which a copy of the factor is solved.
void cholesky_inverse_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  const Tensor factor = c.temporary(self.sizes(), self.dtype()), info = info_of_one(c, self);
}

void cholesky_inverse_cuda_since_12(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  const Tensor factor = c.temporary(self.sizes(), self.dtype());
  if (two_triangular_systems(c, self)) return;
  const Tensor info = info_of_one(c, self), copy = c.temporary(self.sizes(), self.dtype());
}

// FunctionsManual.cpp, cholesky_inverse_backward.
Gradients cholesky_inverse_gradient(Backward& b) {
  const Tensor &inverse = b("result"), &factor = b("self");
  Tensor both = b.grad() + mH(b.grad());
  {
    const Tensor right = matmul(both, inverse);
    both = matmul(inverse, right);
  }
  const Tensor product = b.boolean("upper") ? matmul(factor, both) : matmul(both, factor);
  return {neg(product)};
}

constexpr Op cholesky_solve(void (*host_code)(Call&)) {
  return {.schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
          .summary = "X of L · Lᴴ · X = self",
          .meta = cholesky_solve_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"self", "input2"}, {"self", "input2", "result"}, cholesky_solve_gradients}},
          .flops = [](const Call& c) -> FlopCount {
            return {.own = 2 * c.result_tensor().numel() * c.tensor("input2").size(-1)};
          },
          .examples = {"f32[3,2] f32[3,3]", "f32[2,3,2] f32[2,3,3] True"}};
}

constexpr Op cholesky_inverse(void (*host_code)(Call&)) {
  return {.schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
          .summary = "(L · Lᴴ)⁻¹",
          .meta = square_by_columns_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"self"}, {"self", "result"}, cholesky_inverse_gradient}},
          .flops = cubic_flops<1>,
          .examples = {"f32[3,3]", "f32[2,3,3] True"}};
}

constexpr Op kCholeskySystems[] = {before({2, 12}, cholesky_solve(cholesky_solve_cuda)),
                                   since({2, 12}, cholesky_solve(cholesky_solve_cuda_since_12)),
                                   before({2, 12}, cholesky_inverse(cholesky_inverse_cuda)),
                                   since({2, 12}, cholesky_inverse(cholesky_inverse_cuda_since_12))};

// --- LDLᴴ

void ldl_factor_ex_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  square_by_columns_meta(c);
  c.output(with_batch(batch_of(self), {self.size(-1)}), DType::i32);
  c.output(batch_of(self), DType::i32);
}

void ldl_factor_body(Call& c) {
  const Results all = call_all<"linalg_ldl_factor_ex">(c.session, c["self"], c["hermitian"], false);
  check_info(c.session, all[2], "torch.linalg.ldl_factor");
  c.result(all[0]);
  c.result(all[1]);
}

void ldl_solve_meta(Call& c) {
  by_columns(c, solution_sizes(c, c.tensor("LD"), c.tensor("B")), c.tensor("B").dtype());
}

// cuSOLVER wants the pivots in 64 bits.
void ldl_solve_cuda(Call& c) {
  c.allocate(0);
  if (c.tensor("LD").numel() == 0) return;
  const Tensor wide = c.temporary(c.tensor("pivots").sizes(), DType::i64);
  const Tensor info = c.temporary({}, DType::i32);
}

constexpr Op kLdl[] = {
    {.schema = "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
               "(Tensor LD, Tensor pivots, Tensor info)",
     .summary = "self = L · D · Lᴴ, both factors in one matrix",
     .meta = ldl_factor_ex_meta,
     .derivatives = not_differentiable,
     .flops = cubic_flops<1>,
     .examples = {"f32[3,3]", "f32[2,3,3]"}},
    composite_of("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
                 "self = L · D · Lᴴ, both factors in one matrix", ldl_factor_body, {"f32[3,3]"}),
    {.schema = "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
     .summary = "X of L · D · Lᴴ · X = B",
     .meta = ldl_solve_meta,
     .host_code = {{DeviceType::cuda, ldl_solve_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 2 * c.result_tensor().numel() * c.tensor("LD").size(-1)};
     },
     .examples = {"f32[3,3] i32[3] f32[3,2]", "f32[2,3,3] i32[2,3] f32[3,2]"}}};

// --- QR as reflectors and their scales

void geqrf_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(self)));
  by_columns(c, self.sizes(), self.dtype());
  c.output(with_batch(batch_of(self), {std::min(self.size(-1), self.size(-2))}), self.dtype());
}

}  // namespace

// native/cuda/linalg/BatchLinearAlgebra.cpp, geqrf_kernel: several low matrices (recorded: `opinfo/geqrf/21`, 2.15).
bool reflect_by_cublas(Call& c, const Tensor& a) {
  const int64_t matrices = numel(batch_of(a)), rows = a.size(-2);
  if (rows > 256 || matrices < std::max<int64_t>(2, rows / 16)) return false;
  const int64_t listed = a.numel() == 0 ? 0 : matrices;
  const Tensor of_a = pointers(c, listed), of_scales = pointers(c, listed);
  cublas_workspace(c);
  return true;
}

namespace {

void geqrf_cuda(Call& c) {
  c.allocate_all();
  if (reflect_by_cublas(c, c.tensor("self"))) return;
  const Tensor info = c.temporary(Sizes{1}, DType::i32);
}

constexpr Op kFactoredSystem[] = {{.schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
                                   .summary = "self = Q · R, Q as reflectors below R",
                                   .meta = geqrf_meta,
                                   .host_code = {{DeviceType::cuda, geqrf_cuda}},
                                   .derivatives = not_differentiable,
                                   .flops = cubic_flops<2>,
                                   .examples = {"f32[5,3]", "f32[2,3,5]"}}};

}  // namespace

Tables factored_system_operators() {
  static constexpr Records tables[] = {kCholeskySystems, kLdl, kFactoredSystem};
  return tables;
}

}  // namespace metaprof
