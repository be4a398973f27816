// Element by element: one result element from one element of each operand.

#include "meta/autograd/backward.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"

namespace metaprof {
namespace {

constexpr Facts kInPlaceToo = {.in_place_too = true};

// --- results

void unary_meta(Call& c) {
  const Tensor& self = c.arguments[0].tensor();
  elementwise(c, {&self}, self.dtype());
}
void unary_floating_meta(Call& c) {
  const Tensor& self = c.arguments[0].tensor();
  elementwise(c, {&self}, to_floating(self.dtype()));
}
void binary_meta(Call& c) {
  const Tensor &a = c.arguments[0].tensor(), &b = c.arguments[1].tensor();
  elementwise(c, {&a, &b}, result_type({&a, &b}));
}
void division_meta(Call& c) {
  const Tensor &a = c.arguments[0].tensor(), &b = c.arguments[1].tensor();
  elementwise(c, {&a, &b}, to_floating(result_type({&a, &b})));
}
void with_number_meta(Call& c) {
  const Tensor& self = c.arguments[0].tensor();
  elementwise(c, {&self}, result_type(self, c.arguments[1]));
}

// --- derivatives

// A gradient in the dtype of what it is the gradient of (complex cases aside, the engine casts and sums).
Gradients same(Backward& b) { return {b.grad()}; }

Gradients scaled(Backward& b) {
  const Value& alpha = b["alpha"];
  return {alpha.real() == 1 ? b.grad() : mul(b.grad(), alpha)};
}

}  // namespace

void add_pointwise_operators(std::vector<Op>& ops) {
  ops.push_back({.schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                 .summary = "self + alpha·other",
                 .meta = binary_meta,
                 .kernels = {},
                 .derivatives = {{{"other"}, {}, scaled}, {{"self"}, {}, same}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3] f32[3]", "f32[2,3] 2", "i64[2] f32[]"},
                 .facts = kInPlaceToo});
  ops.push_back({.schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                 .summary = "self − alpha·other",
                 .meta = binary_meta,
                 .kernels = {},
                 .derivatives = {{{"other"},
                                  {},
                                  [](Backward& b) -> Gradients {
                                    const Value& alpha = b["alpha"];
                                    return {alpha.real() == 1 ? neg(b.grad()) : neg(mul(b.grad(), alpha))};
                                  }},
                                 {{"self"}, {}, same}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3] f32[3]"},
                 .facts = kInPlaceToo});
  ops.push_back(
      {.schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor",
       .summary = "self · other",
       .meta = binary_meta,
       .kernels = {},
       .derivatives =
           {{{"other"}, {"self"}, [](Backward& b) -> Gradients { return {mul(b.grad(), b("self"))}; }},
            {{"self"}, {"other"}, [](Backward& b) -> Gradients { return {mul(b.grad(), b("other"))}; }}},
       .flops = elementwise_flops<1>,
       .examples = {"f32[2,3] f32[3]", "f32[2,3] 0.5"},
       .facts = kInPlaceToo});
  ops.push_back({.schema = "div.Tensor(Tensor self, Tensor other) -> Tensor",
                 .summary = "self / other",
                 .meta = division_meta,
                 .kernels = {},
                 .derivatives = {{{"other"},
                                  {"self", "other"},
                                  [](Backward& b) -> Gradients {
                                    // −grad · ((self / other) / other): recorded in this order
                                    // (binary/f32/div).
                                    const Tensor first = div(b("self"), b("other"));
                                    const Tensor second = div(first, b("other"));
                                    return {mul(neg(b.grad()), second)};
                                  }},
                                 {{"self"},
                                  {"other"},
                                  [](Backward& b) -> Gradients { return {div(b.grad(), b("other"))}; }}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3] f32[3]", "i64[2] i64[2]", "f32[2] 3"},
                 .facts = kInPlaceToo});
  ops.push_back({.schema = "neg(Tensor self) -> Tensor",
                 .summary = "−self",
                 .meta = unary_meta,
                 .kernels = {},
                 .derivatives = {{{"self"}, {}, [](Backward& b) -> Gradients { return {neg(b.grad())}; }}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3]"},
                 .facts = kInPlaceToo});
  ops.push_back({.schema = "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                 .summary = "self to the power of a number",
                 .meta = with_number_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {"self"},
                                  [](Backward& b) -> Gradients {
                                    const double exponent = b.real("exponent");
                                    if (exponent == 0) return {zeros_like(b.grad())};
                                    const Value lower = b["exponent"].kind() == Value::Kind::integer
                                                            ? Value(b.integer("exponent") - 1)
                                                            : Value(exponent - 1);
                                    const Tensor power = pow(b("self"), lower);
                                    const Tensor scaled_power = mul(power, b["exponent"]);
                                    return {mul(b.grad(), scaled_power)};
                                  }}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3] 3.0", "f32[2] 2"},
                 .facts = kInPlaceToo});
  ops.push_back({.schema = "tanh(Tensor self) -> Tensor",
                 .summary = "tanh",
                 .meta = unary_floating_meta,
                 .kernels = {},
                 .derivatives = {{{"self"},
                                  {"result"},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"tanh_backward">(b.session, b.grad(), b("result")))};
                                  }}},
                 .flops = elementwise_flops<1>,
                 .examples = {"f32[2,3]"},
                 .facts = kInPlaceToo});
  ops.push_back({.schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
                 .summary = "grad · (1 − output²)",
                 .meta = binary_meta,
                 .kernels = {},
                 .derivatives = {{{"grad_output"},
                                  {"output"},
                                  [](Backward& b) -> Gradients {
                                    return {Tensor(call<"tanh_backward">(b.session, b.grad(), b("output")))};
                                  }},
                                 {{"output"},
                                  {"grad_output", "output"},
                                  [](Backward& b) -> Gradients {
                                    return {mul(mul(b.grad(), mul(b("output"), -2)), b("grad_output"))};
                                  }}},
                 .flops = elementwise_flops<3>,
                 .examples = {"f32[2,3] f32[2,3]"}});
  ops.push_back(
      {.schema = "relu(Tensor self) -> Tensor",
       .summary = "max(self, 0)",
       .meta = unary_meta,
       .kernels = {},
       .derivatives = {{{"self"},
                        {"result"},
                        [](Backward& b) -> Gradients {
                          return {Tensor(call<"threshold_backward">(b.session, b.grad(), b("result"), 0))};
                        }}},
       .flops = elementwise_flops<1>,
       .examples = {"f32[2,3]"},
       .facts = kInPlaceToo});
  ops.push_back(
      {.schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
       .summary = "grad where self > threshold, else 0",
       .meta = binary_meta,
       .kernels = {},
       .derivatives = {{{"grad_output"},
                        {"self"},
                        [](Backward& b) -> Gradients {
                          return {Tensor(
                              call<"threshold_backward">(b.session, b.grad(), b("self"), b["threshold"]))};
                        }},
                       {{"self"}, {}, [](Backward& b) -> Gradients { return {zeros_like(b.grad())}; }}},
       .flops = elementwise_flops<1>,
       .examples = {"f32[2,3] f32[2,3] 0"}});
}

}  // namespace metaprof
