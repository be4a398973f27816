// Activation functions and their backward operators.

#include "meta/ops/all.h"
#include "meta/ops/pointwise.h"
#include "meta/ops/second_derivatives.h"

namespace metaprof {
namespace {

// A gradient that follows from the incoming one and the input: `name_backward(grad, self)`.
template <FixedString name>
Gradients backward_of_self(Backward& b) {
  return {Tensor(call<name>(b.session, b.grad(), b("self")))};
}

Op activation(std::string_view schema, std::string_view summary, Formula formula,
              std::vector<std::string_view> examples = {"f32[2,3]"}) {
  return function_of_one(schema, summary, same_dtype_meta, {{{"self"}, {"self"}, formula}},
                         std::move(examples));
}

// The backward operator of an activation is linear in the incoming gradient.
Op activation_backward(std::string_view schema, std::string_view summary, Derivatives derivatives,
                       std::vector<std::string_view> examples = {"f32[2,3] f32[2,3]"}) {
  return only_functional(
      function_of_two(schema, summary, promoted_meta, std::move(derivatives), std::move(examples)));
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
  const Tensor tanh = call<"tanh">(b.session, Tensor(call<"softplus">(b.session, b("self"))));
  const Tensor square = tanh * tanh;
  const Tensor slope = b("self") * sigmoid * (1 - square);
  return {b.grad() * (tanh + slope)};
}

void add_smooth(std::vector<Op>& ops) {
  ops.push_back(function_of_one("sigmoid(Tensor self) -> Tensor", "1 / (1 + e^−self)", promoted_floating_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    return call<"sigmoid_backward">(b.session, b.grad(), b("result"));
                                  }}}));
  ops.push_back(function_of_one(
      "gelu(Tensor self, *, str approximate='none') -> Tensor", "self · Φ(self)", same_dtype_meta,
      {{{"self"},
        {"self"},
        [](Backward& b) { return call<"gelu_backward">(b.session, b.grad(), b("self"), b["approximate"]); }}},
      {"f32[2,3]", "f32[2,3] \"tanh\""}));
  ops.push_back(activation("silu(Tensor self) -> Tensor", "self · sigmoid(self)", silu_backward));
  ops.push_back(activation("mish(Tensor self) -> Tensor", "self · tanh(softplus(self))", mish_backward));
  ops.push_back(activation("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
                           "ln(1 + e^(beta·self)) / beta", [](Backward& b) {
                             return call<"softplus_backward">(b.session, b.grad(), b("self"), b["beta"],
                                                              b["threshold"]);
                           }));
  ops.back().facts.autocast = Autocast::fp32;
  ops.back().facts.in_place_too = false;
}

void add_smooth_backwards(std::vector<Op>& ops) {
  ops.push_back(activation_backward(
      "tanh_backward(Tensor grad_output, Tensor output) -> Tensor", "grad · (1 − output²)",
      {{{"grad_output"},
        {"output"},
        [](Backward& b) { return call<"tanh_backward">(b.session, b.grad(), b("output")); }},
       {{"output"}, {"grad_output", "output"}, [](Backward& b) {
          return b.grad() * (-2 * b("output") * b("grad_output"));
        }}}));
  ops.push_back(activation_backward(
      "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", "grad · output · (1 − output)",
      {{{"grad_output"},
        {"output"},
        [](Backward& b) { return call<"sigmoid_backward">(b.session, b.grad(), b("output")); }},
       {{"output"}, {"grad_output", "output"}, [](Backward& b) {
          return b.grad() * b("grad_output") * (-2 * b("output") + 1);
        }}}));
  ops.push_back(activation_backward(
      "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
      "grad · gelu'(self)", gelu_twice()));
  ops.push_back(activation_backward("silu_backward(Tensor grad_output, Tensor self) -> Tensor",
                                    "grad · silu'(self)", not_differentiable));
  ops.push_back(activation_backward("mish_backward(Tensor grad_output, Tensor self) -> Tensor",
                                    "grad · mish'(self)", not_differentiable));
  ops.push_back(activation_backward(
      "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
      "grad · softplus'(self)", softplus_twice(), {"f32[2,3] f32[2,3] 1 20"}));
}

void add_piecewise(std::vector<Op>& ops) {
  ops.push_back(function_of_one("relu(Tensor self) -> Tensor", "max(self, 0)", same_dtype_meta,
                                {{{"self"}, {"result"}, [](Backward& b) {
                                    return call<"threshold_backward">(b.session, b.grad(), b("result"), 0);
                                  }}}));
  ops.push_back(activation("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
                           "self between two bounds", [](Backward& b) {
                             return call<"hardtanh_backward">(b.session, b.grad(), b("self"), b["min_val"],
                                                              b["max_val"]);
                           }));
  ops.push_back(activation("hardswish(Tensor self) -> Tensor", "self · relu6(self + 3) / 6",
                           backward_of_self<"hardswish_backward">));
  ops.push_back(activation("hardsigmoid(Tensor self) -> Tensor", "relu6(self + 3) / 6",
                           backward_of_self<"hardsigmoid_backward">));
  ops.push_back(activation(
      "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "self where |self| > lambd, else 0",
      [](Backward& b) { return call<"hardshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); }));
  ops.back().facts.in_place_too = false;
  ops.push_back(activation(
      "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "self moved towards 0 by lambd",
      [](Backward& b) { return call<"softshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); }));
  ops.back().facts.in_place_too = false;
  const Formula threshold_formula = [](Backward& b) {
    return call<"threshold_backward">(b.session, b.grad(), b("self"), b["threshold"]);
  };
  ops.push_back(only_functional(activation("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
                                           "self where self > threshold, else value", threshold_formula,
                                           {"f32[2,3] 0 1"})));
  ops.push_back(node_named(
      "ThresholdBackward1",
      only_functional(activation("threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
                                 "self := self where self > threshold, else value", threshold_formula,
                                 {"f32[2,3] 0 1"}))));
  ops.back().meta = self_meta;
}

// Backward of a piecewise linear function: linear in the gradient, flat in the input.
Op piecewise_backward(std::string_view schema, std::string_view summary, Formula formula,
                      std::vector<std::string_view> examples) {
  return activation_backward(schema, summary,
                             {{{"grad_output"}, {"self"}, formula}, {{"self"}, {}, zero_gradient}},
                             std::move(examples));
}

void add_piecewise_backwards(std::vector<Op>& ops) {
  ops.push_back(piecewise_backward(
      "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
      "grad where self > threshold, else 0",
      [](Backward& b) { return call<"threshold_backward">(b.session, b.grad(), b("self"), b["threshold"]); },
      {"f32[2,3] f32[2,3] 0"}));
  // Its iterator takes self before the gradient, so self's order of dimensions decides
  // (Activation.cpp, 2.11).
  ops.back().meta = Meta([](Call& c) {
    const Tensor &self = c.tensor("self"), &grad = c.tensor("grad_output");
    elementwise(c, {&self, &grad}, result_type({&self, &grad}));
  });
  ops.push_back(piecewise_backward(
      "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
      "grad where self is between the bounds, else 0",
      [](Backward& b) {
        return call<"hardtanh_backward">(b.session, b.grad(), b("self"), b["min_val"], b["max_val"]);
      },
      {"f32[2,3] f32[2,3] -1 1"}));
  ops.push_back(activation_backward("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
                                    "grad · hardswish'(self)", hardswish_twice()));
  ops.push_back(activation_backward("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
                                    "grad · hardsigmoid'(self)",
                                    {{{"grad_output"}, {"self"}, backward_of_self<"hardsigmoid_backward">},
                                     {{"self"}, {}, zero_gradient}}));
  ops.push_back(activation_backward(
      "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
      "grad where |self| > lambd, else 0",
      {{{"grad_out"},
        {"self"},
        [](Backward& b) { return call<"hardshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); }},
       {{"self"}, {}, zero_gradient}},
      {"f32[2,3] f32[2,3] 0.5"}));
  ops.push_back(piecewise_backward(
      "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
      "grad where |self| > lambd, else 0",
      [](Backward& b) { return call<"softshrink_backward">(b.session, b.grad(), b("self"), b["lambd"]); },
      {"f32[2,3] f32[2,3] 0.5"}));
}

// elu, celu, leaky_relu and rrelu in place differentiate from the result: nothing is cloned (recorded:
// inplace/f32/elu).
Op in_place_activation(std::string_view schema, std::string_view summary, std::string_view node,
                       Formula formula) {
  Op op = function_of_one(schema, summary, self_meta, {{{"self"}, {"result"}, formula}}, {"f32[2,3]"});
  return node_named(node, only_functional(std::move(op)));
}

template <bool is_result>
Tensor elu_gradient(Backward& b, const Value& alpha, const Value& scale, const Value& input_scale) {
  return call<"elu_backward">(b.session, b.grad(), alpha, scale, input_scale, is_result,
                              b(is_result ? Name("result") : Name("self")));
}

void add_exponential_units(std::vector<Op>& ops) {
  ops.push_back(only_functional(activation(
      "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
      "scale · (self where self > 0, else alpha · (e^(input_scale·self) − 1))",
      [](Backward& b) { return elu_gradient<false>(b, b["alpha"], b["scale"], b["input_scale"]); })));
  ops.push_back(in_place_activation(
      "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
      "self := elu(self)", "EluBackward1",
      [](Backward& b) { return elu_gradient<true>(b, b["alpha"], b["scale"], b["input_scale"]); }));
  ops.push_back(only_functional(
      activation("celu(Tensor self, Scalar alpha=1.0) -> Tensor",
                 "self where self > 0, else alpha · (e^(self/alpha) − 1)",
                 [](Backward& b) { return elu_gradient<false>(b, b["alpha"], 1, 1 / b.real("alpha")); })));
  ops.push_back(in_place_activation(
      "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)", "self := celu(self)", "CeluBackward1",
      [](Backward& b) { return elu_gradient<true>(b, b["alpha"], 1, 1 / b.real("alpha")); }));
  ops.push_back(activation_backward(
      "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
      "Tensor self_or_result) -> Tensor",
      "grad · elu'", elu_twice(), {"f32[2,3] 1 1 1 False f32[2,3]"}));
  // The constants of Klambauer et al. 2017, as ATen/native/Activation.cpp has them.
  static constexpr double alpha = 1.6732632423543772848170429916717,
                          scale = 1.0507009873554804934193349852946;
  ops.push_back(
      composite_of("selu(Tensor self) -> Tensor", "elu with the constants of self-normalising networks",
                   [](Call& c) { c.result(Tensor(call<"elu">(c.session, c.tensor("self"), alpha, scale))); },
                   {"f32[2,3]"}));
  ops.push_back(
      composite_of("selu_(Tensor(a!) self) -> Tensor(a!)", "self := selu(self)",
                   [](Call& c) { c.result(Tensor(call<"elu_">(c.session, c.tensor("self"), alpha, scale))); },
                   {"f32[2,3]"}));
}

// The order of dimensions is first that of self (native/Activation.cpp, leaky_relu_backward).
void leaky_relu_backward_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &grad = c.tensor("grad_output");
  elementwise(c, {&self, &grad}, result_type({&self, &grad}));
}

void add_leaky_units(std::vector<Op>& ops) {
  ops.push_back(only_functional(activation(
      "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
      "self where self > 0, else negative_slope · self", [](Backward& b) {
        return call<"leaky_relu_backward">(b.session, b.grad(), b("self"), b["negative_slope"], false);
      })));
  ops.push_back(in_place_activation("leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
                                    "self := leaky_relu(self)", "LeakyReluBackward1", [](Backward& b) {
                                      return call<"leaky_relu_backward">(b.session, b.grad(), b("result"),
                                                                         b["negative_slope"], true);
                                    }));
  ops.push_back(only_functional(function_of_two(
      "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> "
      "Tensor",
      "grad where self > 0, else negative_slope · grad", leaky_relu_backward_meta,
      {{{"grad_output"},
        {"self"},
        [](Backward& b) {
          return call<"leaky_relu_backward">(b.session, b.grad(), b("self"), b["negative_slope"], false);
        }},
       {{"self"}, {}, zero_gradient}},
      {"f32[2,3] f32[2,3] 0.01 False"})));
  ops.push_back(composite_of(
      "relu6(Tensor self) -> Tensor", "self between 0 and 6",
      [](Call& c) { c.result(Tensor(call<"hardtanh">(c.session, c.tensor("self"), 0, 6))); }, {"f32[2,3]"}));
  ops.push_back(composite_of(
      "relu6_(Tensor(a!) self) -> Tensor(a!)", "self := relu6(self)",
      [](Call& c) { c.result(Tensor(call<"hardtanh_">(c.session, c.tensor("self"), 0, 6))); }, {"f32[2,3]"}));
}

}  // namespace

void add_activation_operators(std::vector<Op>& ops) {
  add_smooth(ops);
  add_smooth_backwards(ops);
  add_piecewise(ops);
  add_piecewise_backwards(ops);
  add_exponential_units(ops);
  add_leaky_units(ops);
}

}  // namespace metaprof
