// Dropout in all its forms.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/random/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

// --- native_dropout: mask and product in one kernel.

bool is_training(const Call& c) { return !c.given("train") || c.boolean("train"); }

void native_dropout_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  if (is_training(c)) {
    c.output_like(input);
  } else {
    c.result(alias(input));
  }
  c.output_like(input, DType::b8);
}

// The mask comes first (recorded: `opinfo/nn.functional.dropout`), except where p = 1 makes both zeros.
void native_dropout_cuda(Call& c) {
  if (c.real("p") == 1) return c.allocate_all();
  c.allocate(1);
  c.allocate(0);
}

double dropout_scale(Backward& b) {
  const double p = b.real("p");
  if (!b.given("train") || !b.boolean("train")) return 1;
  return p == 1 ? 0 : 1 / (1 - p);
}

// native/cuda/Dropout.cu: in the format that the gradient's strides look like; on the host a product.
void native_dropout_backward_meta(Call& c) {
  const Tensor& gradient = c.tensor("grad_output");
  if (!c.on_cuda()) return (void)c.output_like(gradient);
  c.output(gradient.sizes(), strides_in(suggested_format(gradient), gradient.sizes()), gradient.dtype());
}

// --- The composites (aten/src/ATen/native/Dropout.cpp).

struct Form {
  bool feature = false;  ///< whole channels
  bool alpha = false;    ///< keeps mean and variance of self-normalising networks
  bool in_place = false;
};

Tensor multiplied(Session& s, const Tensor& input, const Tensor& noise, bool in_place) {
  if (in_place) return call<"mul_.Tensor">(s, input, noise);
  return call<"mul.Tensor">(s, input, noise);
}

Tensor noise_for(Call& c, const Tensor& input, bool feature) {
  if (!feature) return call<"empty_like">(c.session, input);
  if (input.dim() < 2)
    c.error(fmt::format("feature dropout needs at least 2 dimensions, got {}", describe(input)));
  Sizes sizes(size_t(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return call<"empty.memory_format">(c.session, sizes, input.dtype(), Value(), input.device());
}

template <Form form>
void noise_body(Call& c) {
  Session& s = c.session;
  const Tensor& input = c.arguments[0].tensor();
  const double p = c.real("p");
  if (p < 0 || p > 1) c.error(fmt::format("the probability must be between 0 and 1, got {}", p));
  if (p == 0 || !c.boolean("train") || input.numel() == 0) return c.result(input);
  if (p == 1) {
    const Tensor zero = call<"zeros">(s, Sizes{}, input.dtype(), Value(), input.device());
    return c.result(multiplied(s, input, zero, form.in_place));
  }
  Tensor shift;
  const Tensor noise = noise_for(c, input, form.feature);
  call<"bernoulli_.float">(s, noise, 1 - p);
  if (!form.alpha) {
    call<"div_.Scalar">(s, noise, 1 - p);
    return c.result(multiplied(s, input, noise, form.in_place));
  }
  constexpr double alpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  shift = call<"add.Scalar">(s, noise, -1);
  call<"mul_.Scalar">(s, shift, alpha * a);
  call<"add_.Scalar">(s, shift, alpha * a * p);
  call<"mul_.Scalar">(s, noise, a);
  const Tensor product = multiplied(s, input, noise, form.in_place);
  c.result(call<"add_.Tensor">(s, product, shift));
}

void dropout_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const double p = c.real("p");
  if (c.boolean("train") && input.is_cuda() && p > 0 && p < 1 && input.numel() > 0)
    return c.result(call_all<"native_dropout">(c.session, input, p, true)[0]);
  noise_body<Form{}>(c);
}

constexpr Op composite_dropout(std::string_view schema, std::string_view summary, void (*body)(Call&),
                               std::string_view example) {
  return composite_of(schema, summary, body, {example}, {.random = true});
}

constexpr Op kDropout[] = {
    {.schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
     .summary = "input · mask / (1 − p), and the mask",
     .meta = native_dropout_meta,
     .host_code = {{DeviceType::cuda, native_dropout_cuda}},
     .derivatives = {{{"input"},
                      {"result1"},
                      [](Backward& b) {
                        return call<"native_dropout_backward">(b.session, b.grad(), b("result1"),
                                                               dropout_scale(b));
                      }}},
     .flops = elementwise_flops<2>,
     .examples = {"f32[2,3] 0.5 True"},
     .facts = {.random = true, .no_gradient_for = {"result1"}}},
    {.schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     .summary = "grad · mask · scale",
     .meta = native_dropout_backward_meta,
     .derivatives = {{{"grad_output"},
                      {"grad_output", "mask"},
                      [](Backward& b) -> Gradients {
                        const Tensor mask = to(b("mask"), b("grad_output").dtype());
                        const Tensor scaled = mask * b["scale"];
                        return {mul(b.grad(), scaled)};
                      }},
                     {{"mask"}, {"grad_output", "mask"}, not_implemented}},
     .flops = elementwise_flops<2>,
     .examples = {"f32[2,3] b8[2,3] 2.0"}},
    composite_dropout("dropout(Tensor input, float p, bool train) -> Tensor",
                      "some elements set to 0, the others scaled up", dropout_body, "f32[2,3] 0.5 True"),
    composite_dropout("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "dropout in place",
                      noise_body<Form{.in_place = true}>, "f32[2,3] 0.5 True"),
    composite_dropout("feature_dropout(Tensor input, float p, bool train) -> Tensor",
                      "some channels set to 0", noise_body<Form{.feature = true}>, "f32[2,3,4] 0.5 True"),
    composite_dropout("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                      "feature dropout in place", noise_body<Form{.feature = true, .in_place = true}>,
                      "f32[2,3,4] 0.5 True"),
    composite_dropout("alpha_dropout(Tensor input, float p, bool train) -> Tensor",
                      "dropout that keeps mean and variance", noise_body<Form{.alpha = true}>,
                      "f32[2,3] 0.5 True"),
    composite_dropout("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                      "alpha dropout in place", noise_body<Form{.alpha = true, .in_place = true}>,
                      "f32[2,3] 0.5 True"),
    composite_dropout("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
                      "alpha dropout of whole channels", noise_body<Form{.feature = true, .alpha = true}>,
                      "f32[2,3,4] 0.5 True"),
    composite_dropout("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
                      "feature alpha dropout in place",
                      noise_body<Form{.feature = true, .alpha = true, .in_place = true}>,
                      "f32[2,3,4] 0.5 True")};

}  // namespace

Tables dropout_operators() {
  static constexpr Records tables[] = {kDropout};
  return tables;
}

}  // namespace metaprof
