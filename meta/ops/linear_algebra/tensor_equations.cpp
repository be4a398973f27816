// Tensors as matrices: equations and inverses over several dimensions at once
// (aten/src/ATen/native/LinearAlgebra.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include <numeric>

#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"

namespace metaprof {
namespace {

Tensor as_square(const Call& c, const Tensor& a, int64_t rows) {
  if (rows * rows != a.numel())
    c.error(fmt::format("expects as many unknowns as equations; got {} equations in {}", rows, describe(a)));
  return reshape(a, Sizes{rows, rows});
}

void solve_body(Call& c) {
  Tensor a = c.tensor("self");
  const Tensor& other = c.tensor("other");
  if (a.dim() < other.dim()) c.error(fmt::format("expects at least the dimensions of {}", describe(other)));
  if (c.given("dims")) {
    Sizes last(c.ints("dims").size(), 0);
    std::iota(last.begin(), last.end(), a.dim() - int64_t(last.size()));
    a = call<"movedim.intlist">(c.session, a, c["dims"], last);
  }
  const Sizes sizes(a.sizes().begin() + other.dim(), a.sizes().end());
  const Tensor matrix = as_square(c, a, numel(sizes));
  const Tensor right = call<"flatten.using_ints">(c.session, other);
  const Tensor unknowns = call<"linalg_solve">(c.session, matrix, right);
  c.result(reshape(unknowns, sizes));
}

void inverse_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t first = c.integer("ind");
  if (first <= 0 || first > self.dim()) c.error(fmt::format("ind must be positive, got {}", first));
  const Sizes front(self.sizes().begin(), self.sizes().begin() + first);
  Sizes sizes(self.sizes().begin() + first, self.sizes().end());
  const Tensor matrix = as_square(c, self, numel(sizes));
  const Results inverse = call_all<"linalg_inv_ex">(c.session, matrix, false);
  check_info(c.session, inverse[1], "inv");
  sizes.append(front.begin(), front.end());
  c.result(reshape(inverse[0], sizes));
}

constexpr Op kTensorEquation[] = {
    composite_of("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
                 "X of Σ self · X = other", solve_body, {"f32[2,3,6] f32[2,3]", "f32[2,3,6] f32[2,3] (0 2)"}),
    composite_of("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", "self⁻¹ as a matrix", inverse_body,
                 {"f32[2,3,6]"})};

}  // namespace

Tables tensor_equation_operators() {
  static constexpr Records tables[] = {kTensorEquation};
  return tables;
}

}  // namespace metaprof
