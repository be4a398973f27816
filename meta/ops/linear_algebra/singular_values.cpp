// What singular values decide: the pseudo-inverse and the rank of matrices
// (aten/src/ATen/native/LinearAlgebra.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/linear_algebra/matrices.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

// --- which values count as 0: those below the larger of a number and a share of the largest value

struct Tolerances {
  Tensor relative, absolute;
};

Tensor double_number(const Tensor& like, double number) {
  return call<"full">(session_of(like), Sizes{}, number, DType::f64, Value(), like.device());
}
Tensor double_zero(const Tensor& like) {
  return call<"zeros">(session_of(like), Sizes{}, DType::f64, Value(), like.device());
}

double default_share(const Tensor& a) {
  const double epsilon = real_type(a.dtype()) == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  return epsilon * double(std::max(a.size(-1), a.size(-2)));
}

// get_atol_rtol: without a share it is 0 where there is a number, which the device decides.
Tolerances tolerances(const Call& c, const Tensor& a) {
  Tensor absolute = c.tensor("atol"), relative = c.tensor("rtol");
  const bool given = absolute.defined();
  if (!given) absolute = double_zero(a);
  if (relative.defined()) return {relative, absolute};
  relative = double_number(a, default_share(a));
  if (!given) return {relative, absolute};
  const Tensor zero = double_zero(a), positive = gt(absolute, 0);
  return {where(positive, zero, relative), absolute};
}

Tolerances number_tolerances(const Tensor& a, const Value& atol, const Value& rtol) {
  const double absolute = atol.is_none() ? 0 : atol.real();
  const double share = absolute > 0 ? 0 : default_share(a);
  const Tensor first = double_number(a, absolute);
  return {double_number(a, rtol.is_none() ? share : rtol.real()), first};
}

Tensor larger(const Tensor& largest, const Tolerances& tolerances) {
  const Tensor relative = unsqueeze(tolerances.relative, -1) * largest;
  return call<"max.other">(session_of(largest), unsqueeze(tolerances.absolute, -1), relative);
}

// --- pseudo-inverse: 1/singular values, those that count as 0 left out

Tensor reciprocals(const Tensor& values, const Tensor& magnitudes, const Tensor& tolerance) {
  const Tensor zero = zeros_of(values, Sizes{}), inverse = call<"reciprocal">(session_of(values), values);
  const Tensor counts = gt(magnitudes, tolerance);
  return where(counts, inverse, zero);
}

Tensor pseudo_inverse(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const Tolerances limits = tolerances(c, self);
  if (self.numel() == 0) {
    Results parts = call_all<"svd">(s, self);
    const Tensor inverse = call<"reciprocal">(s, parts[1]);
    return matmul(parts[2] * unsqueeze(inverse, -2), mH(parts[0]));
  }
  if (c.boolean("hermitian")) {
    Results parts = call_all<"linalg_eigh">(s, self);
    const Tensor values = parts[0], vectors = parts[1], magnitudes = abs(values);
    const Tensor largest = call<"amax">(s, magnitudes, Sizes{-1}, true);
    const Tensor tolerance = larger(largest, limits);
    const Tensor chosen = reciprocals(values, magnitudes, tolerance);
    return matmul(vectors * unsqueeze(chosen, -2), mH(vectors));
  }
  Results parts = call_all<"svd">(s, self);
  const Tensor u = parts[0], values = parts[1], v = parts[2], largest = narrow(values, -1, 0, 1);
  const Tensor tolerance = larger(largest, limits);
  const Tensor chosen = reciprocals(values, values, tolerance);
  return matmul(v * unsqueeze(chosen, -2), mH(u));
}

void pinv_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(self)));
  c.output(with_batch(batch_of(self), {self.size(-1), self.size(-2)}), self.dtype());
}

void pinv_kernel(Call& c) {
  const Tensor made = pseudo_inverse(c);
  c.adopt(0, made);
}

}  // namespace

// FunctionsManual.cpp, pinv_backward; the operands of its sums from right to left, and all products live
// until the sum is there.
Tensor pseudo_inverse_gradient(const Tensor& grad, const Tensor& inverse, const Tensor& a) {
  const Tensor inverse_h = mH(inverse), grad_h = mH(grad);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = matmul(grad_h, inverse), right = matmul(k, inverse_h);
    const Tensor gram = matmul(inverse_h, inverse), seen = matmul(k, a);
    const Tensor rest = grad_h - seen, fourth = matmul(gram, rest);
    const Tensor onto = matmul(a, inverse), third = matmul(onto, right);
    const Tensor around = matmul(inverse, k), first = neg(mH(around));
    const Tensor two = first + right, three = two - third;
    return three + fourth;
  }
  const Tensor k = matmul(inverse, grad_h), left = matmul(inverse_h, k);
  const Tensor across = matmul(left, inverse), fourth = matmul(across, a);
  const Tensor seen = matmul(a, k), rest = grad_h - seen;
  const Tensor onto = matmul(rest, inverse), second = matmul(onto, inverse_h);
  const Tensor around = matmul(k, inverse), first = neg(mH(around));
  const Tensor two = first + second, three = two + left;
  return three - fourth;
}

namespace {

Gradients pinv_gradient(Backward& b) { return {pseudo_inverse_gradient(b.grad(), b("result"), b("self"))}; }

void pinv_numbers_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto [relative, absolute] = number_tolerances(self, c["atol"], c["rtol"]);
  c.result(call<"linalg_pinv.atol_rtol_tensor">(c.session, self, absolute, relative, c["hermitian"]));
}

void pinv_share_body(Call& c) {
  c.result(call<"linalg_pinv.atol_rtol_float">(c.session, c["self"], 0.0, c["rcond"], c["hermitian"]));
}

void pinv_share_tensor_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor zero = double_zero(self);
  c.result(call<"linalg_pinv.atol_rtol_tensor">(c.session, self, zero, c["rcond"], c["hermitian"]));
}

// --- rank: how many values are left

void rank_meta(Call& c) {
  const Tensor& a = c.arguments[0].tensor();
  if (a.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(a)));
  c.output(batch_of(a), DType::i64);
}

void count_values(Call& c, const Tolerances& tolerances) {
  Session& s = c.session;
  const Tensor& a = c.arguments[0].tensor();
  if (a.numel() == 0) return;
  Tensor values, largest;
  if (c.boolean("hermitian")) {
    {
      const Tensor signed_values = call<"linalg_eigvalsh">(s, a);
      values = abs(signed_values);
    }
    largest = call<"amax">(s, values, Sizes{-1}, true);
  } else {
    values = call<"linalg_svdvals">(s, a);
    largest = narrow(values, -1, 0, 1);
  }
  const Tensor tolerance = larger(largest, tolerances), counted = gt(values, tolerance);
  sum_into_result(c, counted, Sizes{-1});
}

void rank_kernel(Call& c) {
  c.allocate(0);
  count_values(c, tolerances(c, c.tensor("input")));
}

void rank_by_numbers_kernel(Call& c) {
  c.allocate(0);
  count_values(c, number_tolerances(c.tensor("self"), c["atol"], c["rtol"]));
}

void rank_by_number_kernel(Call& c) {
  c.allocate(0);
  count_values(c, number_tolerances(c.tensor("self"), c["tol"], 0.0));
}

void rank_by_tensor_kernel(Call& c) {
  const Tensor& tolerance = c.tensor("tol");
  c.allocate(0);
  count_values(c, {zeros_of(tolerance, Sizes{}), tolerance});
}

constexpr Op rank(std::string_view schema, void (*kernel)(Call&), std::string_view example) {
  return {.schema = schema,
          .summary = "rank of matrices",
          .meta = rank_meta,
          .host_code = {{DeviceType::cuda, kernel}, {DeviceType::cpu, kernel}},
          .derivatives = not_differentiable,
          .flops = by_body,
          .examples = {example}};
}

constexpr Op kSingularValue[] = {
    rank("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
         "hermitian=False) -> Tensor",
         rank_kernel, "f32[3,5]"),
    rank("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
         "hermitian=False) -> Tensor",
         rank_by_numbers_kernel, "f32[3,5] 0.1"),
    rank("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", rank_by_number_kernel,
         "f32[3,5] 0.1"),
    rank("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
         rank_by_tensor_kernel, "f32[3,5] f32[]"),
    {.schema = "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
               "hermitian=False) -> Tensor",
     .summary = "pseudo-inverse",
     .meta = pinv_meta,
     .host_code = {{DeviceType::cuda, pinv_kernel}, {DeviceType::cpu, pinv_kernel}},
     .derivatives = {{{"self"}, {"self", "result"}, pinv_gradient}},
     .flops = free_of_flops,
     .examples = {"f32[3,5]", "f32[5,3]"},
     .facts = {.node = "LinalgPinvBackward0"}},
    composite_of("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
                 "hermitian=False) -> Tensor",
                 "pseudo-inverse", pinv_numbers_body, {"f32[3,5] 0.1"}),
    composite_of("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", "pseudo-inverse",
                 pinv_share_body, {"f32[3,5] 0.1"}),
    composite_of("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
                 "pseudo-inverse", pinv_share_tensor_body, {"f32[3,5] f32[]"}),
    composite_of(
        "pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor", "pseudo-inverse",
        [](Call& c) { c.result(call<"linalg_pinv.atol_rtol_float">(c.session, c["self"], 0.0, c["rcond"])); },
        {"f32[3,5]"})};

}  // namespace

Tables singular_value_operators() {
  static constexpr Records tables[] = {kSingularValue};
  return tables;
}

}  // namespace metaprof
