// Losses over pairs, triplets and margins; divergences.

#include <cmath>
#include <numbers>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/losses/family.h"
#include "meta/ops/losses/loss.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/reduction.h"

namespace metaprof {
namespace {

// The bodies follow aten/src/ATen/native/Loss.cpp; the order of calls is recorded (loss/f32, loss3/f32).

void kl_div_body(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  Tensor elements;
  if (c.boolean("log_target")) {
    const Tensor difference = sub(target, self);
    const Tensor weight = exp(target);
    elements = mul(weight, difference);
  } else {
    const Tensor product = mul(target, self);
    const Tensor entropy = call<"xlogy.Tensor">(c.session, target, target);
    elements = sub(entropy, product);
  }
  c.result(apply_reduction(elements, reduction(c)));
}

void poisson_nll_body(Call& c) {
  const Tensor &input = c.tensor("input"), &target = c.tensor("target");
  Session& s = c.session;
  Tensor elements;
  if (c.boolean("log_input")) {
    const Tensor product = mul(target, input);
    const Tensor rate = exp(input);
    elements = sub(rate, product);
  } else {
    const Tensor shifted = call<"add.Scalar">(s, input, c["eps"]);
    const Tensor logarithm = log(shifted);
    const Tensor product = mul(target, logarithm);
    elements = sub(input, product);
  }
  if (c.boolean("full")) {
    Tensor stirling;
    {
      const Tensor circle = target * (2 * std::numbers::pi);
      const Tensor circle_log = log(circle);
      const Tensor half = circle_log * 0.5;
      const Tensor target_log = log(target);
      const Tensor product = mul(target, target_log);
      const Tensor difference = sub(product, target);
      stirling = add(difference, half);
    }
    const Tensor small = call<"le.Scalar">(s, target, 1);
    const Tensor masked = call<"masked_fill.Scalar">(s, stirling, small, 0);
    call<"add_.Tensor">(s, elements, masked);
  }
  c.result(apply_reduction(elements, reduction(c)));
}

void hinge_embedding_body(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  Session& s = c.session;
  const Tensor zeros =
      call<"zeros_like">(s, self, Value(), Value(), Value(), Value(), MemoryFormat::contiguous);
  const Tensor margin = c.real("margin") - self;
  call<"clamp_min_">(s, margin, 0);
  const Tensor negative = call<"ne.Scalar">(s, target, 1);
  const Tensor of_margin = where(negative, margin, zeros);
  const Tensor positive = call<"ne.Scalar">(s, target, -1);
  const Tensor of_self = where(positive, self, zeros);
  const Tensor elements = add(of_margin, of_self);
  c.result(apply_reduction(elements, reduction(c)));
}

void margin_ranking_body(Call& c) {
  Session& s = c.session;
  Tensor elements;
  {
    const Tensor difference = sub(c.tensor("input1"), c.tensor("input2"));
    const Tensor negative = neg(c.tensor("target"));
    const Tensor product = mul(negative, difference);
    elements = call<"add.Scalar">(s, product, c["margin"]);
  }
  call<"clamp_min_">(s, elements, 0);
  c.result(apply_reduction(elements, reduction(c)));
}

constexpr double kCosineEpsilon = 1e-12f;

Tensor squared_length(const Tensor& x, const Tensor& y, int64_t dim, bool with_epsilon) {
  const Tensor product = mul(x, y);
  Tensor total = sum(product, Sizes{dim}, false);
  if (!with_epsilon) return total;
  return call<"add.Scalar">(session_of(x), total, kCosineEpsilon);
}

void cosine_embedding_body(Call& c) {
  Session& s = c.session;
  const Tensor &x = c.tensor("input1"), &y = c.tensor("input2"), &target = c.tensor("target");
  const int64_t dim = target.dim() == 0 ? 0 : 1;
  const Tensor dot = squared_length(x, y, dim, false);
  const Tensor x_length = squared_length(x, x, dim, true), y_length = squared_length(y, y, dim, true);
  const Tensor lengths = mul(x_length, y_length);
  call<"sqrt_">(s, lengths);
  const Tensor cosine = div(dot, lengths);
  const Tensor zeros =
      call<"zeros_like">(s, cosine, Value(), Value(), Value(), Value(), MemoryFormat::contiguous);
  const Tensor distance = 1 - cosine;
  const Tensor beyond = call<"sub.Scalar">(s, cosine, c["margin"]);
  call<"clamp_min_">(s, beyond, 0);
  const Tensor alike = eq(target, 1);
  const Tensor of_alike = where(alike, distance, zeros);
  const Tensor unlike = eq(target, -1);
  const Tensor of_unlike = where(unlike, beyond, zeros);
  const Tensor elements = add(of_alike, of_unlike);
  c.result(apply_reduction(elements, reduction(c)));
}

Tensor distance(Call& c, const Tensor& x, const Tensor& y) {
  return call<"pairwise_distance">(c.session, x, y, c["p"], c["eps"]);
}

void triplet_margin_body(Call& c) {
  Session& s = c.session;
  const Tensor &anchor = c.tensor("anchor"), &positive = c.tensor("positive"),
               &negative = c.tensor("negative");
  const Tensor to_positive = distance(c, anchor, positive);
  Tensor to_negative = distance(c, anchor, negative);
  if (c.boolean("swap")) {
    const Tensor swapped = distance(c, positive, negative);
    to_negative = call<"min.other">(s, to_negative, swapped);
  }
  Tensor elements;
  {
    const Tensor shifted = call<"add.Scalar">(s, to_positive, c["margin"]);
    const Tensor difference = sub(shifted, to_negative);
    elements = call<"clamp_min">(s, difference, 0);
  }
  c.result(apply_reduction(elements, reduction(c)));
}

// --- margins over classes (aten/src/ATen/native/cuda/MultiMarginLoss.cu, MultiLabelMarginCriterion.cu)

int64_t rows(const Tensor& self) { return self.dim() <= 1 ? 1 : self.size(0); }

void row_loss_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const bool per_row = reduction(c) == Reduction::none && c.tensor("target").dim() > 0 && self.dim() > 1;
  c.output(per_row ? Sizes{self.size(0)} : Sizes{}, self.dtype());
}

void sum_rows(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor per_row = c.temporary(Sizes{rows(self)}, self.dtype());
  c.allocate(0);
  reduce_into_result(c, per_row);
}

void multi_margin_cuda(Call& c) {
  c.allocate(0);
  const auto copies = contiguous_arguments(c, {"self", "target", "weight"});
  if (reduction(c) == Reduction::none || c.tensor("self").dim() <= 1) return;
  sum_rows(c);
}

void multi_margin_backward_cuda(Call& c) {
  c.allocate(0);
  const auto copies = contiguous_arguments(c, {"self", "grad_output", "target", "weight"});
}

void contiguous_like_self_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

void multilabel_meta(Call& c) {
  row_loss_meta(c);
  const Tensor& target = c.tensor("target");
  c.output(target.sizes(), c.tensor("self").dtype());
}

void multilabel_cuda(Call& c) {
  const auto copies = contiguous_arguments(c, {"self", "target"});
  c.allocate(1);
  if (reduction(c) == Reduction::none || c.tensor("self").dim() <= 1) return c.allocate(0);
  sum_rows(c);
}

void multilabel_backward_cuda(Call& c) {
  c.allocate(0);
  const auto copies = contiguous_arguments(c, {"self", "target", "grad_output", "is_target"});
}

constexpr auto pairwise = [](const Call& c) -> FlopCount { return {.own = 3 * c.tensor("self").numel()}; };
constexpr Op kClassMargins[] = {
    {.schema = "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
               "weight=None, int reduction=1) -> Tensor",
     .summary = "Σ max(0, margin − self[target] + self)^p per row",
     .meta = row_loss_meta,
     .host_code = {{DeviceType::cuda, multi_margin_cuda}},
     .derivatives = {{{"self"},
                      {"self", "target", "weight"},
                      [](Backward& b) {
                        return call<"multi_margin_loss_backward">(b.session, b.grad(), b("self"), b("target"),
                                                                  b["p"], b["margin"], b("weight"),
                                                                  b["reduction"]);
                      }}},
     .flops = pairwise,
     .examples = {"f32[4,3] i64[4]"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema = "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar "
               "margin, Tensor? weight=None, int reduction=1) -> Tensor",
     .summary = "gradient of multi_margin_loss",
     .meta = contiguous_like_self_meta,
     .host_code = {{DeviceType::cuda, multi_margin_backward_cuda}},
     .derivatives = {{{"grad_output"}, {}, not_implemented}, {{"self"}, {}, not_implemented}},
     .flops = pairwise,
     .examples = {"f32[] f32[4,3] i64[4] 1 1"}},
    composite_loss("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
                   "Σ max(0, 1 − self[targets] + self[others]) per row",
                   [](Call& c) {
                     Results results = call_all<"multilabel_margin_loss_forward">(
                         c.session, c["self"], c["target"], c["reduction"]);
                     c.result(results[0]);
                   },
                   {"f32[4,3] i64[4,3]"}),
    {.schema = "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, "
               "Tensor is_target)",
     .summary = "multilabel_margin_loss, and which classes are targets",
     .meta = multilabel_meta,
     .host_code = {{DeviceType::cuda, multilabel_cuda}},
     .derivatives = {{{"self"},
                      {"self", "target", "is_target"},
                      [](Backward& b) {
                        return call<"multilabel_margin_loss_backward">(
                            b.session, b.grad(), b("self"), b("target"), b["reduction"], b("is_target"));
                      }}},
     .flops = pairwise,
     .examples = {"f32[4,3] i64[4,3] 1"},
     .facts = {.node = "MultilabelMarginLossBackward0", .no_gradient_for = {"is_target"}}},
    {.schema = "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
               "reduction, Tensor is_target) -> Tensor",
     .summary = "gradient of multilabel_margin_loss",
     .meta = contiguous_like_self_meta,
     .host_code = {{DeviceType::cuda, multilabel_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = pairwise,
     .examples = {"f32[] f32[4,3] i64[4,3] 1 f32[4,3]"}}};

constexpr Op kMarginLoss[] = {
    composite_loss("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
                   "target · (log target − self)", kl_div_body,
                   {"f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] 2 True"}),
    composite_loss("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
                   "reduction) -> Tensor",
                   "exp(input) − target · input", poisson_nll_body,
                   {"f32[2,3] f32[2,3] True False 1e-8 1", "f32[2,3] f32[2,3] False True 1e-8 0"}),
    composite_loss(
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        "self where target is 1, max(0, margin − self) where it is −1", hinge_embedding_body,
        {"f32[2,3] f32[2,3]"}),
    composite_loss("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
                   "reduction=1) -> Tensor",
                   "max(0, −target · (input1 − input2) + margin)", margin_ranking_body,
                   {"f32[2,3] f32[2,3] f32[2,3]"}),
    composite_loss("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
                   "reduction=1) -> Tensor",
                   "1 − cos where target is 1, max(0, cos − margin) where it is −1", cosine_embedding_body,
                   {"f32[2,3] f32[2,3] f32[2]"}),
    composite_loss(
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
        "float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
        "max(0, |anchor − positive| − |anchor − negative| + margin)", triplet_margin_body,
        {"f32[2,3] f32[2,3] f32[2,3]", "f32[2,3] f32[2,3] f32[2,3] 1.0 2.0 1e-6 True 0"})};

}  // namespace

Tables margin_loss_operators() {
  static constexpr Records tables[] = {kClassMargins, kMarginLoss};
  return tables;
}

}  // namespace metaprof
