// Functions of one tensor: powers, exponentials, logarithms, trigonometry, rounding.

#include <numbers>

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"

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

constexpr Op kArithmetic[] = {
    function_of_one("neg(Tensor self) -> Tensor", "−self", same_dtype_meta,
                    {{{"self"}, {}, [](Backward& b) { return neg(b.grad()); }}}),
    on_cuda(abs_cuda,
            function_of_one("abs(Tensor self) -> Tensor", "|self|",
                            [](Call& c) {
                              const Tensor& self = c.tensor("self");
                              elementwise(c, {&self}, real_type(self.dtype()));
                            },
                            {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * sgn(b("self")); }}})),
    fp32_under_autocast(function_of_one("reciprocal(Tensor self) -> Tensor", "1 / self",
                                        promoted_floating_meta,
                                        {{{"self"},
                                          {"result"},
                                          [](Backward& b) {
                                            const Tensor square = conj(b("result") * b("result"));
                                            return neg(b.grad()) * square;
                                          }}})),
    function_of_one("sqrt(Tensor self) -> Tensor", "√self", promoted_floating_meta,
                    {{{"self"}, {"result"}, [](Backward& b) { return b.grad() / (2 * conj(b("result"))); }}}),
    fp32_under_autocast(function_of_one("rsqrt(Tensor self) -> Tensor", "1 / √self", promoted_floating_meta,
                                        {{{"self"},
                                          {"result"},
                                          [](Backward& b) {
                                            const Tensor cube = conj(pow(b("result"), 3));
                                            return -0.5 * b.grad() * cube;
                                          }}})),
    composite_of("square(Tensor self) -> Tensor", "self²",
                 [](Call& c) { c.result(pow(c.tensor("self"), 2)); }, {"f32[2,3]"}),
    composite_of("square_(Tensor(a!) self) -> Tensor(a!)", "self := self²",
                 [](Call& c) { c.result(call<"pow_.Scalar">(c.session, c.tensor("self"), 2)); },
                 {"f32[2,3]"}),
    composite_of("positive(Tensor(a) self) -> Tensor(a)", "self", [](Call& c) { c.result(c.tensor("self")); },
                 {"f32[2,3]"})};

constexpr Op kExponentials[] = {
    fp32_under_autocast(
        function_of_one("exp(Tensor self) -> Tensor", "e^self", promoted_floating_meta,
                        {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * conj(b("result")); }}})),
    function_of_one("exp2(Tensor self) -> Tensor", "2^self", promoted_floating_meta,
                    {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * conj(b("result")) * ln2; }}}),
    fp32_under_autocast(function_of_one(
        "expm1(Tensor self) -> Tensor", "e^self − 1", promoted_floating_meta,
        {{{"self"}, {"result"}, [](Backward& b) { return b.grad() * (conj(b("result")) + 1); }}})),
    fp32_under_autocast(
        function_of_one("log(Tensor self) -> Tensor", "ln self", promoted_floating_meta,
                        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / conj(b("self")); }}})),
    fp32_under_autocast(function_of_one(
        "log10(Tensor self) -> Tensor", "log₁₀ self", promoted_floating_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (conj(b("self")) * ln10); }}})),
    fp32_under_autocast(
        function_of_one("log1p(Tensor self) -> Tensor", "ln(1 + self)", promoted_floating_meta,
                        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / conj(b("self") + 1); }}})),
    fp32_under_autocast(function_of_one(
        "log2(Tensor self) -> Tensor", "log₂ self", promoted_floating_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / (conj(b("self")) * ln2); }}}))};

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

constexpr Op kTrigonometry[] = {
    function_of_one("sin(Tensor self) -> Tensor", "sin", promoted_floating_meta,
                    {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * conj(cos(b("self"))); }}}),
    function_of_one("cos(Tensor self) -> Tensor", "cos", promoted_floating_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) {
                        const Tensor sine = conj(sin(b("self")));
                        return b.grad() * neg(sine);
                      }}}),
    fp32_under_autocast(function_of_one("tan(Tensor self) -> Tensor", "tan", promoted_floating_meta,
                                        {{{"self"},
                                          {"result"},
                                          [](Backward& b) {
                                            const Tensor square = pow(b("result"), 2);
                                            return b.grad() * conj(1 + square);
                                          }}})),
    fp32_under_autocast(
        function_of_one("asin(Tensor self) -> Tensor", "arcsin", promoted_floating_meta,
                        {{{"self"},
                          {"self"},
                          [](Backward& b) { return b.grad() * conj(rsqrt(-b("self") * b("self") + 1)); }}})),
    fp32_under_autocast(
        function_of_one("acos(Tensor self) -> Tensor", "arccos", promoted_floating_meta,
                        {{{"self"},
                          {"self"},
                          [](Backward& b) { return b.grad() * -conj(rsqrt(-b("self") * b("self") + 1)); }}})),
    function_of_one(
        "atan(Tensor self) -> Tensor", "arctan", promoted_floating_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() / conj(b("self") * b("self") + 1); }}}),
    function_of_one("sinc(Tensor self) -> Tensor", "sin(π self) / (π self)", promoted_floating_meta,
                    {{{"self"}, {"self"}, sinc_backward}})};

constexpr Op hyperbolic_inverse(std::string_view schema, std::string_view summary, Formula formula) {
  return only_functional(
      function_of_one(schema, summary, promoted_floating_meta, {{{"self"}, {"self"}, formula}}));
}

constexpr Op without_in_place_derivative(std::string_view schema, std::string_view summary,
                                         std::string_view node) {
  Op op = function_of_one(schema, summary, self_meta, {{{"self"}, {}, not_implemented}}, {"f32[2,3]"});
  return node_named(node, only_functional(op));
}

// One root is enough for real numbers.
Gradients acosh_gradient(Backward& b) {
  if (!is_complex(b.dtype("self"))) return {b.grad() * rsqrt(b("self") * b("self") - 1)};
  const Tensor more = rsqrt(b("self") + 1);
  const Tensor less = rsqrt(b("self") - 1);
  return {b.grad() * conj(more * less)};
}

constexpr Op kHyperbolic[] = {
    fp32_under_autocast(
        function_of_one("sinh(Tensor self) -> Tensor", "sinh", promoted_floating_meta,
                        {{{"self"},
                          {"self"},
                          [](Backward& b) { return b.grad() * conj(call<"cosh">(b.session, b("self"))); }}})),
    fp32_under_autocast(
        function_of_one("cosh(Tensor self) -> Tensor", "cosh", promoted_floating_meta,
                        {{{"self"},
                          {"self"},
                          [](Backward& b) { return b.grad() * conj(call<"sinh">(b.session, b("self"))); }}})),
    function_of_one("tanh(Tensor self) -> Tensor", "tanh", promoted_floating_meta,
                    {{{"self"},
                      {"result"},
                      [](Backward& b) { return call<"tanh_backward">(b.session, b.grad(), b("result")); }}}),
    hyperbolic_inverse("asinh(Tensor self) -> Tensor", "arsinh",
                       [](Backward& b) { return b.grad() * conj(rsqrt(pow(b("self"), 2) + 1)); }),
    hyperbolic_inverse("acosh(Tensor self) -> Tensor", "arcosh", acosh_gradient),
    hyperbolic_inverse("atanh(Tensor self) -> Tensor", "artanh",
                       [](Backward& b) {
                         const Tensor square = pow(b("self"), 2);
                         const Tensor rest = conj(1 - square);
                         return b.grad() * 1 / rest;
                       }),
    without_in_place_derivative("asinh_(Tensor(a!) self) -> Tensor(a!)", "arsinh", "AsinhBackward1"),
    without_in_place_derivative("acosh_(Tensor(a!) self) -> Tensor(a!)", "arcosh", "AcoshBackward1"),
    without_in_place_derivative("atanh_(Tensor(a!) self) -> Tensor(a!)", "artanh", "AtanhBackward1")};

// FunctionsManual.cpp, sgn_backward: a tensor without storage for real numbers.
Gradients sgn_gradient(Backward& b) {
  if (!is_complex(b.dtype("self")))
    return {Tensor(call<"_efficientzerotensor">(b.session, b.sizes("self"), b.dtype("self"), Value(),
                                                b.shape("self")->device))};
  const Tensor length = abs(b("self"));
  const Tensor square = b("result") * b("result");
  const Tensor across = b.grad() - square * conj(b.grad());
  const Tensor twice = 2 * length;
  const Tensor slope = across / twice;
  const Tensor origin = eq(length, 0.0);
  return {Tensor(call<"masked_fill_.Scalar">(b.session, slope, origin, 0.0))};
}

constexpr Op kSteps[] = {
    function_of_one("sign(Tensor self) -> Tensor", "sign", same_dtype_meta, flat()),
    function_of_one("floor(Tensor self) -> Tensor", "⌊self⌋", same_dtype_meta, flat()),
    function_of_one("ceil(Tensor self) -> Tensor", "⌈self⌉", same_dtype_meta, flat()),
    function_of_one("trunc(Tensor self) -> Tensor", "self towards 0", same_dtype_meta, flat()),
    function_of_one("round(Tensor self) -> Tensor", "self to the nearest integer", same_dtype_meta, flat()),
    node_named("RoundBackward1",
               function_of_one("round.decimals(Tensor self, *, int decimals) -> Tensor",
                               "self to that many digits", same_dtype_meta, flat(), {"f32[2,3] 2"})),
    function_of_one("frac(Tensor self) -> Tensor", "self − trunc(self)", same_dtype_meta,
                    {{{"self"}, {}, gradient_itself}}),
    function_of_one("sgn(Tensor self) -> Tensor", "self / |self|", same_dtype_meta,
                    {{{"self"}, {"self", "result"}, sgn_gradient}}),
    function_of_one(
        "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        "self with numbers for NaN and ±∞", same_dtype_meta,
        {{{"self"},
          {"self"},
          [](Backward& b) { return b.grad() * call<"isfinite">(b.session, b("self")); }}}),
    function_of_one("deg2rad(Tensor self) -> Tensor", "self · π/180", promoted_floating_meta,
                    {{{"self"}, {}, [](Backward& b) { return b.grad() * (pi / 180); }}}),
    function_of_one("rad2deg(Tensor self) -> Tensor", "self · 180/π", promoted_floating_meta,
                    {{{"self"}, {}, [](Backward& b) { return b.grad() * (180 / pi); }}})};

// --- what training for fewer bits rounds (aten/src/ATen/native/quantized/FakeQuantPerTensorAffine.cpp)

constexpr Op kSimulatedQuantization[] = {
    composite_of("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, "
                 "int quant_max) -> Tensor",
                 "self as it would come back from an integer between two bounds",
                 [](Call& c) {
                   c.result(call_all<"fake_quantize_per_tensor_affine_cachemask">(
                       c.session, c.tensor("self"), c["scale"], c["zero_point"], c["quant_min"],
                       c["quant_max"])[0]);
                 },
                 {"f32[2,3] 0.1 0 0 255"}),
    {.schema = "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int "
               "quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .summary = "the same, and where self lies between the bounds",
     .meta =
         [](Call& c) {
           c.output_like(c.tensor("self"));
           c.output_like(c.tensor("self"), DType::b8);
         },
     .derivatives = {{{"self"},
                      {"mask"},
                      [](Backward& b) {
                        return call<"fake_quantize_per_tensor_affine_cachemask_backward">(b.session, b.grad(),
                                                                                          b("mask"));
                      }}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] 0.1 0 0 255"}},
    composite_of("fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
                 "grad where the mask is set", [](Call& c) { c.result(c.tensor("grad") * c.tensor("mask")); },
                 {"f32[2,3] bool[2,3]"}),
};

}  // namespace

Tables unary_operators() {
  static constexpr Records tables[] = {kArithmetic, kExponentials, kTrigonometry,
                                       kHyperbolic, kSteps,        kSimulatedQuantization};
  return tables;
}

}  // namespace metaprof
