// Vector norms and distances.

#include "meta/ops/reductions/norms.h"

#include <cmath>

#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

Tensor power_(Session& s, const Tensor& self, double exponent) {
  return call<"pow_.Scalar">(s, self, exponent);
}

// Everything is broadcast to self's sizes already.
Tensor norm_gradient_of(Session& s, const Tensor& grad, const Tensor& self, double p, const Tensor& norm,
                        const Value& dims) {
  if (p == 0) return {};
  if (p == 1) {
    const Tensor sign = sgn(self);
    return mul(sign, grad);
  }
  if (p == 2) {
    const Tensor direction = div(self, norm);
    const Tensor zero = eq(norm, 0);
    masked_fill_(direction, zero, 0);
    return mul(grad, direction);
  }
  if (std::isinf(p)) {
    const Tensor magnitude = abs(self);
    Tensor mask;
    {
      const Tensor largest = eq(magnitude, norm);
      const Tensor missing = isnan(magnitude);
      mask = call<"logical_or">(s, largest, missing);
    }
    const Tensor sharing = call<"sum.dim_IntList">(s, mask, dims.is_none() ? Value(Sizes{}) : dims, true);
    const Tensor share = div(grad, sharing);
    const Tensor shared = mul(share, mask);
    const Tensor sign = sgn(self);
    return mul(sign, shared);
  }
  Tensor scaled;
  if (p < 2) {
    const Tensor powers = power_(s, abs(self), p - 1);
    Tensor zero;
    if (p < 1) {
      zero = eq(self, 0);
      masked_fill_(powers, zero, 0);
    }
    const Tensor sign = sgn(self);
    scaled = mul(sign, powers);
  } else {
    const Tensor powers = power_(s, abs(self), p - 2);
    scaled = mul(self, powers);
  }
  if (p < 1) {
    const Tensor power = pow(norm, 1 - p);
    const Tensor product = mul(scaled, grad);
    return mul(product, power);
  }
  Tensor scale;
  {
    const Tensor power = pow(norm, p - 1);
    scale = div(grad, power);
  }
  {
    const Tensor zero = eq(norm, 0);
    masked_fill_(scale, zero, 0);
  }
  return mul(scaled, scale);
}

void vector_norm_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  reduced_output(c, self, c["dim"], c.boolean("keepdim"), c.dtype("dtype", real_type(self.dtype())));
}

void vector_norm_cuda(Call& c) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor& self = c.tensor("self");
  // Sizes of complex numbers are taken by the kernel.
  const bool in_kernel = is_complex(self.dtype()) && real_type(self.dtype()) == dtype;
  const Tensor input = in_kernel ? self : reduction_input(c, self, dtype);
  reduction_buffers(c, input, reduced_dims(c, c["dim"], input.dim()), c.result_tensor(),
                    {.accumulator = accumulator_bytes(dtype)});
}

// --- norm: the older overloads, dims as a list, dtype at the end

template <bool has_dims, bool has_dtype>
void norm_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const DType dtype = has_dtype ? c.dtype("dtype", self.dtype()) : real_type(self.dtype());
  if constexpr (has_dims) {
    reduced_output(c, self, c["dim"], c.boolean("keepdim"), dtype);
  } else {
    c.output({}, dtype);
  }
}

template <bool has_dims>
void norm_cuda(Call& c) {
  c.allocate(0);
  const DType dtype = c.result_tensor().dtype();
  const Tensor input = reduction_input(c, c.tensor("self"), dtype);
  const Value dims = has_dims ? c["dim"] : Value();
  reduction_buffers(c, input, reduced_dims(c, dims, input.dim()), c.result_tensor(),
                    {.accumulator = accumulator_bytes(dtype)});
}

template <bool has_dims, bool has_dtype>
Gradients old_norm_backward(Backward& b) {
  const double p = b.given("p") ? b.real("p") : 2;
  const Tensor self = has_dtype ? to(b("self"), b.grad().dtype()) : b("self");
  if constexpr (has_dims)
    return {norm_gradient(b.session, b.grad(), self, p, b("result"), b["dim"], b.boolean("keepdim"))};
  return {norm_gradient(b.session, b.grad(), self, p, b("result"), Value(), true)};
}

template <bool has_dims, bool has_dtype>
constexpr Op norm(std::string_view schema, std::string_view node, std::string_view example) {
  return {.schema = schema,
          .summary = "p-norm",
          .meta = norm_meta<has_dims, has_dtype>,
          .host_code = {{DeviceType::cuda, norm_cuda<has_dims>}},
          .derivatives = {{{"self"}, {"self", "result"}, old_norm_backward<has_dims, has_dtype>}},
          .flops = [](const Call& c) -> FlopCount { return {.own = 2 * c.tensor("self").numel()}; },
          .examples = {example},
          .facts = {.node = node}};
}

void pairwise_distance_body(Call& c) {
  const Tensor &x = c.tensor("x1"), &y = c.tensor("x2");
  const Tensor difference = sub(x, y);
  const Tensor shifted = call<"add.Scalar">(c.session, difference, c["eps"]);
  const int64_t innermost = std::max(x.dim(), y.dim()) - 1;
  c.result(call<"norm.ScalarOpt_dim">(c.session, shifted, c["p"], Sizes{innermost}, c["keepdim"]));
}

// Norms are cloned before they are clamped, so that norm's own result stays what it was.
Tensor clamped_norm(Call& c, const Tensor& x) {
  const Tensor length = call<"linalg_vector_norm">(c.session, x, 2, Sizes{c.integer("dim")}, true);
  return clone(length);
}

void cosine_similarity_body(Call& c) {
  Session& s = c.session;
  const Tensor &given_x = c.tensor("x1"), &given_y = c.tensor("x2");
  const DType dtype = result_type({&given_x, &given_y});
  Tensor x = to(given_x, dtype), y = to(given_y, dtype);
  const Sizes sizes = broadcast(x.sizes(), y.sizes());
  // Arguments of one C++ call, the last first.
  if (y.sizes() != sizes) y = expand(y, sizes);
  if (x.sizes() != sizes) x = expand(x, sizes);
  const Tensor x_length = clamped_norm(c, x), y_length = clamped_norm(c, y);
  const DType exact = dtype == DType::f64 ? DType::f64 : DType::f32;  // what the arithmetic is done in
  const Tensor eps = call<"scalar_tensor">(s, c["eps"], exact, Value(), x.device());
  {
    Scoped<bool> no_grad(s.modes.grad, false);
    call<"clamp_min_.Tensor">(s, x_length, eps);
    call<"clamp_min_.Tensor">(s, y_length, eps);
  }
  const Tensor y_direction = div(y, y_length);
  const Tensor x_direction = div(x, x_length);
  const Tensor product = mul(x_direction, y_direction);
  c.result(sum(product, Sizes{c.integer("dim")}, false));
}

// Under autocast these are called with a dtype of fp32 (autocast_mode.h, fp32_append_dtype).
bool in_lower_precision(const Call& c) {
  const Tensor& self = c.tensor("self");
  return self.is_cuda() && is_floating(self.dtype()) && self.dtype() != DType::f64;
}

void norm_in_fp32(Call& c) {
  if (!in_lower_precision(c)) return c.next();
  c.result(call<"norm.ScalarOpt_dtype">(c.session, c["self"], c["p"], DType::f32));
}

void norm_along_dimensions_in_fp32(Call& c) {
  if (!in_lower_precision(c)) return c.next();
  c.result(Tensor(
      call<"norm.ScalarOpt_dim_dtype">(c.session, c["self"], c["p"], c["dim"], c["keepdim"], DType::f32)));
}

constexpr Op casting_itself(void (*cast_by)(Call&), Op op) {
  op.facts.cast_by = cast_by;
  return op;
}

constexpr Op kOldNorms[] = {
    casting_itself(norm_in_fp32, norm<false, false>("norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
                                                    "NormBackward0", "f32[3]")),
    casting_itself(norm_along_dimensions_in_fp32,
                   norm<true, false>(
                       "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
                       "NormBackward1", "f32[2,3] 2 (1)")),
    norm<false, true>("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
                      "NormBackward2", "f32[3] 2 6"),
    norm<true, true>("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
                     "ScalarType dtype) -> Tensor",
                     "NormBackward3", "f32[2,3] 2 (1) False 6")};

// --- dist: the norm of a difference

void dist_meta(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("other");
  c.output({}, result_type({&a, &b}));
}

void dist_kernel(Call& c) {
  const Tensor difference = sub(c.tensor("self"), c.tensor("other"));
  c.allocate(0);
  Sizes dims;
  for (int64_t d = 0; d < difference.dim(); ++d) dims.push_back(d);
  reduction_buffers(c, difference, dims, c.result_tensor(),
                    {.accumulator = accumulator_bytes(difference.dtype())});
}

Tensor dist_gradient(Backward& b, const Tensor& difference) {
  return norm_gradient(b.session, b.grad(), difference, b.real("p"), b("result"), Value(), true);
}

}  // namespace

Tensor norm_gradient(Session& s, const Tensor& grad, const Tensor& self, double p, const Tensor& norm,
                     const Value& dims, bool keepdim) {
  if (keepdim || self.dim() == 0) return norm_gradient_of(s, grad, self, p, norm, dims);
  const Tensor wide_grad = restore_dims(grad, dims, self.dim());
  return norm_gradient_of(s, wide_grad, self, p, restore_dims(norm, dims, self.dim()), dims);
}

namespace {

constexpr Op kNorm[] = {
    {.schema = "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
               "ScalarType? dtype=None) -> Tensor",
     .summary = "(Σ |self|^ord)^(1/ord)",
     .meta = vector_norm_meta,
     .host_code = {{DeviceType::cuda, vector_norm_cuda}},
     .derivatives = {{{"self"},
                      {"self", "result"},
                      [](Backward& b) -> Gradients {
                        return {norm_gradient(b.session, b.grad(), b("self"), b.real("ord"), b("result"),
                                              b["dim"], b.boolean("keepdim"))};
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 2 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3]", "f32[2,3] 1 (1)", "f32[2,3] 3.0 (0) True"},
     .facts = {.autocast = Autocast::fp32_set_dtype}},
    composite_of("pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                 "keepdim=False) -> Tensor",
                 "p-norm of x1 − x2 + eps along the last dimension", pairwise_distance_body,
                 {"f32[2,3] f32[2,3]"}),
    composite_of("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
                 "x1 · x2 / (|x1| · |x2|)", cosine_similarity_body, {"f32[2,3] f32[2,3]"},
                 {.autocast = Autocast::fp32}),
    {.schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
     .summary = "p-norm of self − other",
     .meta = dist_meta,
     .host_code = {{DeviceType::cuda, dist_kernel}},
     .derivatives = {{{"other"},
                      {"self", "other", "result"},
                      [](Backward& b) -> Gradients {
                        const Tensor difference = sub(b("self"), b("other"));
                        const Tensor gradient = dist_gradient(b, difference);
                        return {gradient.defined() ? neg(gradient) : Tensor()};
                      }},
                     {{"self"},
                      {"self", "other", "result"},
                      [](Backward& b) -> Gradients {
                        const Tensor difference = sub(b("self"), b("other"));
                        return {dist_gradient(b, difference)};
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3] f32[2,3]", "f32[2,3] f32[3] 1"},
     .facts = {.autocast = Autocast::fp32}}};

}  // namespace

Tables norm_operators() {
  static constexpr Records tables[] = {kOldNorms, kNorm};
  return tables;
}

}  // namespace metaprof
