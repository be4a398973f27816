// Activation functions and their backward operators.

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// A gradient that follows from the incoming one and the input: `name_backward(grad, self)`.
template <FixedString name>
Gradients backward_of_self(Backward& b) {
  return {call<name>(b.session, b.grad(), b("self"))};
}

constexpr Op activation(std::string_view schema, std::string_view summary, Formula formula,
                        const Examples& examples = {"f32[2,3]"}) {
  return function_of_one(schema, summary, same_dtype_meta, {{{"self"}, {"self"}, formula}}, examples);
}

// The backward operator of an activation is linear in the incoming gradient.
constexpr Op activation_backward(std::string_view schema, std::string_view summary, Derivatives derivatives,
                                 const Examples& examples = {"f32[2,3] f32[2,3]"}) {
  return only_functional(function_of_two(schema, summary, promoted_meta, derivatives, examples));
}

// A formula for second derivatives that the framework writes without fused operators while it records
// (FunctionsManual.cpp, infinitely_differentiable_silu_backward).
Gradients silu_backward(Backward& b) {
  if (!b.session.modes.grad) return backward_of_self<"silu_backward">(b);
  const Tensor sigmoid = call<"sigmoid">(b.session, b("self"));
  return {b.grad() * (sigmoid * (1 + b("self") * (1 - sigmoid)))};
}

Gradients mish_backward(Backward& b) {
  if (!b.session.modes.grad) return backward_of_self<"mish_backward">(b);
  const Tensor sigmoid = call<"sigmoid">(b.session, b("self"));
  const Tensor tanh = call<"tanh">(b.session, call<"softplus">(b.session, b("self")));
  const Tensor square = tanh * tanh;
  const Tensor slope = b("self") * sigmoid * (1 - square);
  return {b.grad() * (tanh + slope)};
}

constexpr Op kSmooth[] = {
    function_of_one(
        "sigmoid(Tensor self) -> Tensor", "1 / (1 + e^−self)", promoted_floating_meta,
        {{{"self"},
          {"result"},
          [](Backward& b) { return call<"sigmoid_backward">(b.session, b.grad(), b("result")); }}}),
    function_of_one("gelu(Tensor self, *, str approximate='none') -> Tensor", "self · Φ(self)",
                    same_dtype_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) {
                        return call<"gelu_backward">(b.session, b.grad(), b("self"), b["approximate"]);
                      }}},
                    {"f32[2,3]", "f32[2,3] \"tanh\""}),
    activation("silu(Tensor self) -> Tensor", "self · sigmoid(self)", silu_backward),
    activation("mish(Tensor self) -> Tensor", "self · tanh(softplus(self))", mish_backward),
    only_functional(under_autocast(
        Autocast::fp32, activation("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
                                   "ln(1 + e^(beta·self)) / beta", [](Backward& b) {
                                     return call<"softplus_backward">(b.session, b.grad(), b("self"),
                                                                      b["beta"], b["threshold"]);
                                   })))};

// --- second derivatives

Tensor gelu_slope_of_slope(const Tensor& x) {
  const double scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2 * 0.5;
  const Tensor square = x * x;
  const Tensor density = scale * exp(-0.5 * square);
  const Tensor bend = square * density;
  return 2 * density - bend;
}

Tensor tanh_gelu_slope_of_slope(const Tensor& x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
  Session& s = session_of(x);
  const Tensor inner = scale * (x + kappa * pow(x, 3));
  const Tensor tanh_inner = call<"tanh">(s, inner);
  const Tensor sech_inner = 1 / call<"cosh">(s, inner);
  const Tensor f = 0.5 * x;
  const Tensor g = 1 - tanh_inner * tanh_inner;
  const Tensor h = scale * (3 * kappa * x * x + 1);
  const Tensor f_prime_gh = 0.5 * g * h;
  const Tensor negative = neg(sech_inner) * tanh_inner;
  const Tensor g_prime = 2 * sech_inner * negative * h;
  const Tensor g_prime_fh = f * h * g_prime;
  const Tensor h_prime = 6 * kappa * x * scale;
  const Tensor h_prime_fg = f * g * h_prime;
  return 2 * f_prime_gh + g_prime_fh + h_prime_fg;
}

Tensor gelu_of_self(Backward& b) {
  const bool tanh = b["approximate"].string() == "tanh";
  const Tensor slope = tanh ? tanh_gelu_slope_of_slope(b("self")) : gelu_slope_of_slope(b("self"));
  return b.grad() * b("grad_output") * slope;
}

Tensor softplus_of_self(Backward& b) {
  const Tensor grad = b.grad() * b("grad_output");
  const Tensor x = b("self") * b["beta"];
  const Tensor below = to(lt(x, b["threshold"]), grad.dtype());
  const Tensor slope = sigmoid(x);
  const Tensor bent = call<"sigmoid_backward">(b.session, grad, slope);
  return bent * below * b["beta"];
}

constexpr Derivatives gelu_twice() {
  return {
      {{"grad_output"},
       {"self"},
       [](Backward& b) { return call<"gelu_backward">(b.session, b.grad(), b("self"), b["approximate"]); }},
      {{"self"}, {"grad_output", "self"}, [](Backward& b) { return gelu_of_self(b); }}};
}

constexpr Derivatives softplus_twice() {
  return {{{"grad_output"},
           {"self"},
           [](Backward& b) {
             return call<"softplus_backward">(b.session, b.grad(), b("self"), b["beta"], b["threshold"]);
           }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return softplus_of_self(b); }}};
}

constexpr Op kSmoothBackwards[] = {
    activation_backward(
        "tanh_backward(Tensor grad_output, Tensor output) -> Tensor", "grad · (1 − output²)",
        {{{"grad_output"},
          {"output"},
          [](Backward& b) { return call<"tanh_backward">(b.session, b.grad(), conj(b("output"))); }},
         {{"output"},
          {"grad_output", "output"},
          [](Backward& b) { return conj(b.grad()) * (-2 * conj(b("output")) * b("grad_output")); }}}),
    activation_backward(
        "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", "grad · output · (1 − output)",
        {{{"grad_output"},
          {"output"},
          [](Backward& b) { return call<"sigmoid_backward">(b.session, b.grad(), conj(b("output"))); }},
         {{"output"},
          {"grad_output", "output"},
          [](Backward& b) { return conj(b.grad()) * b("grad_output") * (-2 * conj(b("output")) + 1); }}}),
    activation_backward("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
                        "grad · gelu'(self)", gelu_twice()),
    activation_backward("silu_backward(Tensor grad_output, Tensor self) -> Tensor", "grad · silu'(self)",
                        not_differentiable),
    activation_backward("mish_backward(Tensor grad_output, Tensor self) -> Tensor", "grad · mish'(self)",
                        not_differentiable),
    activation_backward(
        "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
        "grad · softplus'(self)", softplus_twice(), {"f32[2,3] f32[2,3] 1 20"})};

Tensor threshold_gradient(Backward& b) {
  return call<"threshold_backward">(b.session, b.grad(), b("self"), b["threshold"]);
}

constexpr Op kPiecewise[] = {
    function_of_one(
        "relu(Tensor self) -> Tensor", "max(self, 0)", same_dtype_meta,
        {{{"self"},
          {"result"},
          [](Backward& b) { return call<"threshold_backward">(b.session, b.grad(), b("result"), 0); }}}),
    activation("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
               "self between two bounds",
               [](Backward& b) {
                 return call<"hardtanh_backward">(b.session, b.grad(), b("self"), b["min_val"], b["max_val"]);
               }),
    activation("hardswish(Tensor self) -> Tensor", "self · relu6(self + 3) / 6",
               backward_of_self<"hardswish_backward">),
    activation("hardsigmoid(Tensor self) -> Tensor", "relu6(self + 3) / 6",
               backward_of_self<"hardsigmoid_backward">),
    only_functional(activation(
        "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "self where |self| > lambd, else 0",
        [](Backward& b) { return call<"hardshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); })),
    only_functional(activation(
        "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "self moved towards 0 by lambd",
        [](Backward& b) { return call<"softshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); })),
    only_functional(activation("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
                               "self where self > threshold, else value",
                               [](Backward& b) { return threshold_gradient(b); }, {"f32[2,3] 0 1"})),
    writing_self(node_named("ThresholdBackward1",
                            only_functional(activation(
                                "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
                                "self := self where self > threshold, else value",
                                [](Backward& b) { return threshold_gradient(b); }, {"f32[2,3] 0 1"}))))};

// Backward of a piecewise linear function: linear in the gradient, flat in the input.
constexpr Op piecewise_backward(std::string_view schema, std::string_view summary, Formula formula,
                                const Examples& examples) {
  return activation_backward(schema, summary,
                             {{{"grad_output"}, {"self"}, formula}, {{"self"}, {}, zero_gradient}}, examples);
}

// Its iterator takes self before the gradient, so self's order of dimensions decides (Activation.cpp, 2.11).
void threshold_backward_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &grad = c.tensor("grad_output");
  elementwise(c, {&self, &grad}, result_type({&self, &grad}));
}

Tensor hardswish_of_self(Backward& b) {
  const Tensor& self = b("self");
  const Tensor zero = call<"zeros">(b.session, Sizes{}, self.dtype(), Value(), self.device());
  const Tensor bent = b.grad() * b("grad_output") / 3.0;
  const Tensor below = lt(self, 3.0);
  const Tensor above = gt(self, -3.0);
  return where(logical_and(above, below), bent, zero);
}

constexpr Derivatives hardswish_twice() {
  return {{{"grad_output"},
           {"self"},
           [](Backward& b) { return call<"hardswish_backward">(b.session, b.grad(), b("self")); }},
          {{"self"}, {"grad_output", "self"}, [](Backward& b) { return hardswish_of_self(b); }}};
}

constexpr Op kPiecewiseBackwards[] = {
    with_meta(threshold_backward_meta,
              piecewise_backward(
                  "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
                  "grad where self > threshold, else 0",
                  [](Backward& b) {
                    return call<"threshold_backward">(b.session, b.grad(), b("self"), b["threshold"]);
                  },
                  {"f32[2,3] f32[2,3] 0"})),
    piecewise_backward(
        "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        "grad where self is between the bounds, else 0",
        [](Backward& b) {
          return call<"hardtanh_backward">(b.session, b.grad(), b("self"), b["min_val"], b["max_val"]);
        },
        {"f32[2,3] f32[2,3] -1 1"}),
    activation_backward("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
                        "grad · hardswish'(self)", hardswish_twice()),
    activation_backward("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
                        "grad · hardsigmoid'(self)",
                        {{{"grad_output"}, {"self"}, backward_of_self<"hardsigmoid_backward">},
                         {{"self"}, {}, zero_gradient}}),
    activation_backward("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
                        "grad where |self| > lambd, else 0",
                        {{{"grad_out"},
                          {"self"},
                          [](Backward& b) {
                            return call<"hardshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]);
                          }},
                         {{"self"}, {}, zero_gradient}},
                        {"f32[2,3] f32[2,3] 0.5"}),
    piecewise_backward(
        "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
        "grad where |self| > lambd, else 0",
        [](Backward& b) { return call<"softshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); },
        {"f32[2,3] f32[2,3] 0.5"})};

// elu, celu, leaky_relu and rrelu in place differentiate from the result: nothing is cloned (recorded:
// inplace/f32/elu).
constexpr Op in_place_activation(std::string_view schema, std::string_view summary, std::string_view node,
                                 Formula formula) {
  Op op = function_of_one(schema, summary, self_meta, {{{"self"}, {"result"}, formula}}, {"f32[2,3]"});
  return node_named(node, only_functional(op));
}

template <bool is_result>
Tensor elu_gradient(Backward& b, const Value& alpha, const Value& scale, const Value& input_scale) {
  return call<"elu_backward">(b.session, b.grad(), alpha, scale, input_scale, is_result,
                              b(is_result ? Name("result") : Name("self")));
}

// The constants of Klambauer et al. 2017, as ATen/native/Activation.cpp has them.
constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
Tensor elu_of_self(Backward& b) {
  const Tensor& x = b("self_or_result");
  const Tensor negative = to(lt(x, 0), b.grad().dtype());
  const Tensor grad = b.grad() * b("grad_output") * b["input_scale"];
  if (b.boolean("is_result")) return grad * negative;
  const Tensor slope =
      call<"elu_backward">(b.session, grad, b["alpha"], b["scale"], b["input_scale"], false, x);
  return slope * negative;
}

constexpr Derivatives elu_twice() {
  return {
      {{"grad_output"},
       {"self_or_result"},
       [](Backward& b) {
         return call<"elu_backward">(b.session, b.grad(), b["alpha"], b["scale"], b["input_scale"],
                                     b["is_result"], b("self_or_result"));
       }},
      {{"self_or_result"}, {"grad_output", "self_or_result"}, [](Backward& b) { return elu_of_self(b); }}};
}

constexpr Op kExponentialUnits[] = {
    only_functional(activation(
        "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        "scale · (self where self > 0, else alpha · (e^(input_scale·self) − 1))",
        [](Backward& b) { return elu_gradient<false>(b, b["alpha"], b["scale"], b["input_scale"]); })),
    in_place_activation(
        "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
        "self := elu(self)", "EluBackward1",
        [](Backward& b) { return elu_gradient<true>(b, b["alpha"], b["scale"], b["input_scale"]); }),
    only_functional(
        activation("celu(Tensor self, Scalar alpha=1.0) -> Tensor",
                   "self where self > 0, else alpha · (e^(self/alpha) − 1)",
                   [](Backward& b) { return elu_gradient<false>(b, b["alpha"], 1, 1 / b.real("alpha")); })),
    in_place_activation(
        "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)", "self := celu(self)", "CeluBackward1",
        [](Backward& b) { return elu_gradient<true>(b, b["alpha"], 1, 1 / b.real("alpha")); }),
    activation_backward("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
                        "bool is_result, Tensor self_or_result) -> Tensor",
                        "grad · elu'", elu_twice(), {"f32[2,3] 1 1 1 False f32[2,3]"}),
    composite_of("selu(Tensor self) -> Tensor", "elu with the constants of self-normalising networks",
                 [](Call& c) { c.result(call<"elu">(c.session, c.tensor("self"), alpha, scale)); },
                 {"f32[2,3]"}),
    composite_of("selu_(Tensor(a!) self) -> Tensor(a!)", "self := selu(self)",
                 [](Call& c) { c.result(call<"elu_">(c.session, c.tensor("self"), alpha, scale)); },
                 {"f32[2,3]"})};

// The order of dimensions is first that of self (native/Activation.cpp, leaky_relu_backward).
void leaky_relu_backward_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &grad = c.tensor("grad_output");
  elementwise(c, {&self, &grad}, result_type({&self, &grad}));
}

constexpr Op kLeakyUnits[] = {
    only_functional(activation("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
                               "self where self > 0, else negative_slope · self",
                               [](Backward& b) {
                                 return call<"leaky_relu_backward">(b.session, b.grad(), b("self"),
                                                                    b["negative_slope"], false);
                               })),
    in_place_activation("leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
                        "self := leaky_relu(self)", "LeakyReluBackward1",
                        [](Backward& b) {
                          return call<"leaky_relu_backward">(b.session, b.grad(), b("result"),
                                                             b["negative_slope"], true);
                        }),
    only_functional(function_of_two(
        "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> "
        "Tensor",
        "grad where self > 0, else negative_slope · grad", leaky_relu_backward_meta,
        {{{"grad_output"},
          {"self"},
          [](Backward& b) {
            return call<"leaky_relu_backward">(b.session, b.grad(), b("self"), b["negative_slope"], false);
          }},
         {{"self"}, {}, zero_gradient}},
        {"f32[2,3] f32[2,3] 0.01 False"})),
    composite_of("relu6(Tensor self) -> Tensor", "self between 0 and 6",
                 [](Call& c) { c.result(call<"hardtanh">(c.session, c.tensor("self"), 0, 6)); },
                 {"f32[2,3]"}),
    composite_of("relu6_(Tensor(a!) self) -> Tensor(a!)", "self := relu6(self)",
                 [](Call& c) { c.result(call<"hardtanh_">(c.session, c.tensor("self"), 0, 6)); },
                 {"f32[2,3]"})};

}  // namespace

Tables activation_operators() {
  static constexpr Records tables[] = {kSmooth,           kSmoothBackwards, kPiecewise, kPiecewiseBackwards,
                                       kExponentialUnits, kLeakyUnits};
  return tables;
}

}  // namespace metaprof
