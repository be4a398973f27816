// Functions of one tensor: powers, exponentials, logarithms, trigonometry, rounding.

#include <numbers>

#include "meta/ops/all.h"
#include "meta/ops/pointwise.h"

namespace metaprof {
namespace {

using std::numbers::ln10;
using std::numbers::ln2;
using std::numbers::pi;

// native/UnaryOps.cpp, unary_op_impl_with_complex_to_float_out: of complex numbers the result is computed as
// complex numbers, and then their real part is copied.
void abs_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  if (is_complex(self.dtype())) c.temporary(self.sizes(), self.dtype());
}

void add_arithmetic(std::vector<Op>& ops) {
  ops.push_back(function_of_one("neg(Tensor self) -> Tensor", "−self", same_dtype_meta,
                                {{{"self"}, {}, [](Backward& b) { return neg(b.grad()); }}}));
  ops.push_back(
      function_of_one("abs(Tensor self) -> Tensor", "|self|",
                      [](Call& c) {
                        const Tensor& self = c.tensor("self");
                        elementwise(c, {&self}, real_type(self.dtype()));
                      },
                      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * sgn(b("self")); }}}));
  ops.back().kernels = {{DeviceType::cuda, abs_cuda}};
  ops.push_back(function_of_one("reciprocal(Tensor self) -> Tensor", "1 / self", promoted_floating_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    const Tensor square = b("result") * b("result");
                                    return neg(b.grad()) * square;
                                  }}}));
  ops.push_back(
      function_of_one("sqrt(Tensor self) -> Tensor", "√self", promoted_floating_meta,
                      {{{"self"}, {"result"}, [](Backward& b) { return b.grad() / (2 * b("result")); }}}));
  ops.push_back(function_of_one("rsqrt(Tensor self) -> Tensor", "1 / √self", promoted_floating_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    const Tensor cube = pow(b("result"), 3);
                                    return -0.5 * b.grad() * cube;
                                  }}}));
  ops.push_back(composite_of("square(Tensor self) -> Tensor", "self²",
                             [](Call& c) { c.result(pow(c.tensor("self"), 2)); }, {"f32[2,3]"}));
  ops.push_back(composite_of(
      "square_(Tensor(a!) self) -> Tensor(a!)", "self := self²",
      [](Call& c) { c.result(Tensor(call<"pow_.Scalar">(c.session, c.tensor("self"), 2))); }, {"f32[2,3]"}));
  ops.push_back(composite_of("positive(Tensor(a) self) -> Tensor(a)", "self",
                             [](Call& c) { c.result(c.tensor("self")); }, {"f32[2,3]"}));
}

void add_exponentials(std::vector<Op>& ops) {
  ops.push_back(
      function_of_one("exp(Tensor self) -> Tensor", "e^self", promoted_floating_meta,
                      {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * b("result"); }}}));
  ops.push_back(
      function_of_one("exp2(Tensor self) -> Tensor", "2^self", promoted_floating_meta,
                      {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * b("result") * ln2; }}}));
  ops.push_back(
      function_of_one("expm1(Tensor self) -> Tensor", "e^self − 1", promoted_floating_meta,
                      {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * (b("result") + 1); }}}));
  ops.push_back(function_of_one("log(Tensor self) -> Tensor", "ln self", promoted_floating_meta,
                                {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / b("self"); }}}));
  ops.push_back(
      function_of_one("log10(Tensor self) -> Tensor", "log₁₀ self", promoted_floating_meta,
                      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (b("self") * ln10); }}}));
  ops.push_back(
      function_of_one("log1p(Tensor self) -> Tensor", "ln(1 + self)", promoted_floating_meta,
                      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (b("self") + 1); }}}));
  ops.push_back(
      function_of_one("log2(Tensor self) -> Tensor", "log₂ self", promoted_floating_meta,
                      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (b("self") * ln2); }}}));
}

// FunctionsManual.cpp, sinc_backward: 0 where the square is 0.
Tensor sinc_slope(const Tensor& grad, const Tensor& angle, const Tensor& square) {
  const Tensor sine = sin(angle);
  return grad * ((angle * cos(angle) - sine) / square);
}
Gradients sinc_backward(Backward& b) {
  const Tensor angle = b("self") * Value(pi);
  const Tensor square = b("self") * b("self") * Value(pi);
  const Tensor gradient = sinc_slope(b.grad(), angle, square);
  const Tensor zero = scalar_like(gradient, 0.0);
  const Tensor flat = eq(square, 0.0);
  return {where(flat, zero, gradient)};
}

void add_trigonometry(std::vector<Op>& ops) {
  ops.push_back(
      function_of_one("sin(Tensor self) -> Tensor", "sin", promoted_floating_meta,
                      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * cos(b("self")); }}}));
  ops.push_back(function_of_one("cos(Tensor self) -> Tensor", "cos", promoted_floating_meta,
                                {{{"self"}, {"self"}, [](Backward& b) {
                                    const Tensor sine = sin(b("self"));
                                    return b.grad() * neg(sine);
                                  }}}));
  ops.push_back(function_of_one("tan(Tensor self) -> Tensor", "tan", promoted_floating_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    const Tensor square = pow(b("result"), 2);
                                    return b.grad() * (1 + square);
                                  }}}));
  ops.push_back(function_of_one(
      "asin(Tensor self) -> Tensor", "arcsin", promoted_floating_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * rsqrt(-b("self") * b("self") + 1); }}}));
  ops.push_back(function_of_one(
      "acos(Tensor self) -> Tensor", "arccos", promoted_floating_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * -rsqrt(-b("self") * b("self") + 1); }}}));
  ops.push_back(function_of_one(
      "atan(Tensor self) -> Tensor", "arctan", promoted_floating_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (b("self") * b("self") + 1); }}}));
  ops.push_back(function_of_one("sinc(Tensor self) -> Tensor", "sin(π self) / (π self)",
                                promoted_floating_meta, {{{"self"}, {"self"}, sinc_backward}}));
}

Op hyperbolic_inverse(std::string_view schema, std::string_view summary, Formula formula) {
  return only_functional(
      function_of_one(schema, summary, promoted_floating_meta, {{{"self"}, {"self"}, formula}}));
}

Op without_in_place_derivative(std::string_view schema, std::string_view summary, std::string_view node) {
  Op op = function_of_one(schema, summary, self_meta, {{{"self"}, {}, not_implemented}}, {"f32[2,3]"});
  return node_named(node, only_functional(std::move(op)));
}

void add_hyperbolic(std::vector<Op>& ops) {
  ops.push_back(function_of_one(
      "sinh(Tensor self) -> Tensor", "sinh", promoted_floating_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * call<"cosh">(b.session, b("self")); }}}));
  ops.push_back(function_of_one(
      "cosh(Tensor self) -> Tensor", "cosh", promoted_floating_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * call<"sinh">(b.session, b("self")); }}}));
  ops.push_back(function_of_one("tanh(Tensor self) -> Tensor", "tanh", promoted_floating_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    return call<"tanh_backward">(b.session, b.grad(), b("result"));
                                  }}}));
  ops.push_back(hyperbolic_inverse("asinh(Tensor self) -> Tensor", "arsinh",
                                   [](Backward& b) { return b.grad() * rsqrt(pow(b("self"), 2) + 1); }));
  ops.push_back(hyperbolic_inverse("acosh(Tensor self) -> Tensor", "arcosh",
                                   [](Backward& b) { return b.grad() * rsqrt(b("self") * b("self") - 1); }));
  ops.push_back(hyperbolic_inverse("atanh(Tensor self) -> Tensor", "artanh", [](Backward& b) {
    const Tensor square = pow(b("self"), 2);
    const Tensor rest = 1 - square;
    return b.grad() * 1 / rest;
  }));
  ops.push_back(
      without_in_place_derivative("asinh_(Tensor(a!) self) -> Tensor(a!)", "arsinh", "AsinhBackward1"));
  ops.push_back(
      without_in_place_derivative("acosh_(Tensor(a!) self) -> Tensor(a!)", "arcosh", "AcoshBackward1"));
  ops.push_back(
      without_in_place_derivative("atanh_(Tensor(a!) self) -> Tensor(a!)", "artanh", "AtanhBackward1"));
}

void add_steps(std::vector<Op>& ops) {
  ops.push_back(function_of_one("sign(Tensor self) -> Tensor", "sign", same_dtype_meta, flat()));
  ops.push_back(function_of_one("floor(Tensor self) -> Tensor", "⌊self⌋", same_dtype_meta, flat()));
  ops.push_back(function_of_one("ceil(Tensor self) -> Tensor", "⌈self⌉", same_dtype_meta, flat()));
  ops.push_back(function_of_one("trunc(Tensor self) -> Tensor", "self towards 0", same_dtype_meta, flat()));
  ops.push_back(function_of_one("round(Tensor self) -> Tensor", "self to the nearest integer",
                                same_dtype_meta, flat()));
  ops.push_back(
      node_named("RoundBackward1",
                 function_of_one("round.decimals(Tensor self, *, int decimals) -> Tensor",
                                 "self to that many digits", same_dtype_meta, flat(), {"f32[2,3] 2"})));
  ops.push_back(function_of_one("frac(Tensor self) -> Tensor", "self − trunc(self)", same_dtype_meta,
                                {{{"self"}, {}, gradient_itself}}));
  ops.push_back(function_of_one("sgn(Tensor self) -> Tensor", "self / |self|", same_dtype_meta,
                                {{{"self"}, {"self", "result"}, [](Backward& b) {
                                    // FunctionsManual.cpp, sgn_backward: a tensor without storage for real
                                    // numbers.
                                    if (is_complex(b.dtype("self"))) not_implemented(b);
                                    return call<"_efficientzerotensor">(b.session, b.sizes("self"),
                                                                        b.dtype("self"), Value(),
                                                                        b.shape("self")->device);
                                  }}}));
  Op nan_to_num = function_of_one(
      "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
      "self with numbers for NaN and ±∞", same_dtype_meta,
      {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * call<"isfinite">(b.session, b("self")); }}});
  ops.push_back(std::move(nan_to_num));
  ops.push_back(function_of_one("deg2rad(Tensor self) -> Tensor", "self · π/180", promoted_floating_meta,
                                {{{"self"}, {}, [](Backward& b) { return b.grad() * (pi / 180); }}}));
  ops.push_back(function_of_one("rad2deg(Tensor self) -> Tensor", "self · 180/π", promoted_floating_meta,
                                {{{"self"}, {}, [](Backward& b) { return b.grad() * (180 / pi); }}}));
}

// aten/src/ATen/autocast_mode.h, AT_FORALL_FP32 (2.11).
constexpr std::string_view kInFp32UnderAutocast[] = {"acos(", "asin(",  "cosh(",      "exp(",   "expm1(",
                                                     "log(",  "log10(", "log2(",      "log1p(", "rsqrt(",
                                                     "sinh(", "tan(",   "reciprocal("};

void set_autocast_rules(std::span<Op> ops) {
  for (Op& op : ops)
    for (std::string_view beginning : kInFp32UnderAutocast)
      if (op.schema.starts_with(beginning)) op.facts.autocast = Autocast::fp32;
}

}  // namespace

void add_unary_operators(std::vector<Op>& ops) {
  const size_t before = ops.size();
  add_arithmetic(ops);
  add_exponentials(ops);
  add_trigonometry(ops);
  add_hyperbolic(ops);
  add_steps(ops);
  set_autocast_rules(std::span(ops).subspan(before));
}

}  // namespace metaprof
