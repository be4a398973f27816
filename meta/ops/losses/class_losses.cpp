// Losses over classes: negative log-likelihood and cross entropy.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/losses/family.h"
#include "meta/ops/losses/loss.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

constexpr int64_t kClassDim = 1;
int64_t class_dim(const Tensor& self) { return self.dim() == 1 ? 0 : kClassDim; }

void nll_loss_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  if (self.dim() < 1 || self.dim() > 2)
    c.error(fmt::format("expects one or two dimensions, got {}", describe(self)));
  if (self.dim() == 2 && (target.dim() != 1 || target.size(0) != self.size(0)))
    c.error(fmt::format("needs one target per row; got {} and {}", describe(self), describe(target)));
  const bool per_row = reduction(c) == Reduction::none && self.dim() == 2;
  c.output(per_row ? Sizes{self.size(0)} : Sizes{}, self.dtype());
  c.output({}, self.dtype());
}

// From 2.15 on targets of a sum are made contiguous, too (recorded: `opinfo/nn.functional.nll_loss/61`).
template <bool targets_too>
void contiguous_classes(Call& c) {
  if (targets_too && reduction(c) != Reduction::none) {
    contiguous_arguments(c, {"target", "weight"});
  } else {
    contiguous_arguments(c, {"weight"});
  }
}

template <bool targets_too>
void nll_loss_cuda(Call& c) {
  c.allocate_all();
  contiguous_classes<targets_too>(c);
}

void nll_loss2d_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  if (self.dim() != 4 || target.dim() != 3)
    c.error(fmt::format("expects [N,C,H,W] and [N,H,W]; got {} and {}", describe(self), describe(target)));
  c.output(reduction(c) == Reduction::none ? target.sizes() : Sizes{}, self.dtype());
  c.output({}, self.dtype());
}

// aten/src/ATen/native/cuda/NLLLoss2d.cu: the total weight first.
void nll_loss2d_cuda(Call& c) {
  c.allocate(1);
  c.allocate(0);
  if (reduction(c) != Reduction::none) {
    contiguous_arguments(c, {"self", "weight", "target"});
  } else {
    contiguous_arguments(c, {"weight"});
  }
}

void like_self_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output(self.sizes(), self.dtype());
}

template <bool targets_too>
void nll_loss_backward_cuda(Call& c) {
  c.allocate(0);
  contiguous_classes<targets_too>(c);
}

void nll_loss2d_backward_cuda(Call& c) {
  c.allocate(0);
  if (reduction(c) != Reduction::none) {
    contiguous_arguments(c, {"target", "weight"});
  } else {
    contiguous_arguments(c, {"weight"});
  }
}

template <FixedString backward>
Gradients nll_gradient(Backward& b) {
  return {call<backward>(b.session, b.grad(), b("self"), b("target"), b("weight"), b["reduction"],
                         b["ignore_index"], b("total_weight"))};
}

template <FixedString forward>
Gradients nll_double_gradient(Backward& b) {
  return {Tensor(
      call<forward>(b.session, b.grad(), b("target"), b("weight"), b["reduction"], b["ignore_index"]))};
}

template <FixedString forward>
void first_result_body(Call& c) {
  Results results =
      call_all<forward>(c.session, c["self"], c["target"], c["weight"], c["reduction"], c["ignore_index"]);
  c.result(results[0]);
}

Tensor nll_loss_of(Call& c, const Tensor& self, const Tensor& target) {
  return call<"nll_loss_nd">(c.session, self, target, c["weight"], c["reduction"], c["ignore_index"]);
}

// Any number of dimensions: two go to nll_loss, four to nll_loss2d, others are seen as [N,C,1,rest].
void nll_loss_nd_body(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  Session& s = c.session;
  const Value &weight = c["weight"], &reduction_value = c["reduction"], &ignored = c["ignore_index"];
  if (self.dim() < 1) c.error(fmt::format("expects 1 or more dimensions, got {}", describe(self)));
  if (self.dim() <= 2) return c.result(call<"nll_loss">(s, self, target, weight, reduction_value, ignored));
  if (self.dim() == 4) return c.result(call<"nll_loss2d">(s, self, target, weight, reduction_value, ignored));
  Sizes sizes = self.sizes();
  sizes.erase(1);
  if (target.sizes() != sizes)
    c.error(
        fmt::format("the target must have sizes {}, got {}", to_string(SizesView(sizes)), describe(target)));
  const int64_t n = self.size(0), classes = self.size(1);
  Tensor input = contiguous(self), labels = contiguous(target);
  const bool any = input.numel() > 0;
  input = view(input, any ? Sizes{n, classes, 1, -1} : Sizes{n, classes, 0, 0});
  labels = view(labels, labels.numel() > 0 ? Sizes{n, 1, -1} : Sizes{n, 0, 0});
  const Tensor out = call<"nll_loss2d">(s, input, labels, weight, reduction_value, ignored);
  c.result(reduction(c) == Reduction::none ? view(out, sizes) : out);
}

// weight as [1,C,1,…], to multiply log-probabilities with.
Tensor broadcast_weight(const Tensor& weight, const Tensor& input) {
  Sizes sizes(size_t(input.dim()), 1);
  sizes[size_t(class_dim(input))] = weight.size(0);
  return view(weight, sizes);
}

// Targets are probabilities: −Σ input·target [·weight].
void probability_targets(Call& c, const Tensor& input, double smoothing) {
  const Tensor& weight = c.tensor("weight");
  const int64_t classes = input.size(class_dim(input));
  Tensor target = c.tensor("target");
  if (smoothing > 0) target = add(mul(target, 1 - smoothing), smoothing / double(classes));
  const Tensor broadcast = weight.defined() ? broadcast_weight(weight, input) : Tensor();
  const Tensor product = mul(input, target);
  const Tensor weighted = weight.defined() ? mul(product, broadcast) : product;
  if (reduction(c) == Reduction::none) {
    const Tensor total = sum(weighted, {{class_dim(input)}}, false);
    return c.result(neg(total));
  }
  const Tensor total = sum(weighted);
  if (reduction(c) == Reduction::mean && input.numel() == 0)  // a mean of nothing, NaN
    call<"fill_.Scalar">(c.session, total, std::nan(""));
  const Tensor negative = neg(total);
  if (reduction(c) == Reduction::sum || input.numel() == 0) return c.result(negative);
  c.result(call<"div.Scalar">(c.session, negative, input.numel() / classes));
}

// (1 − ε) · nll + ε/C · Σ −log p: the second part counts every class alike.
void smoothed_targets(Call& c, const Tensor& input, double smoothing) {
  Session& s = c.session;
  const Tensor &target = c.tensor("target"), &weight = c.tensor("weight");
  const int64_t classes = input.size(class_dim(input)), dim = class_dim(input);
  const Tensor nll = nll_loss_of(c, input, target);
  Tensor smooth;
  if (weight.defined()) {
    const Tensor broadcast = broadcast_weight(weight, input);
    const Tensor product = mul(input, broadcast);
    const Tensor total = sum(product, {{dim}}, false);
    smooth = neg(total);
  } else {
    const Tensor total = sum(input, {{dim}}, false);
    smooth = neg(total);
  }
  const Tensor ignored = call<"eq.Scalar">(s, target, c["ignore_index"]);
  call<"masked_fill_.Scalar">(s, smooth, ignored, 0.0);
  Tensor ret;
  if (reduction(c) == Reduction::none) {
    ret = smooth;
  } else if (reduction(c) == Reduction::sum) {
    ret = sum(smooth);
  } else {
    const Tensor kept = call<"bitwise_not">(s, ignored);
    Tensor count;
    if (weight.defined()) {
      const Tensor labels = call<"masked_select">(s, target, kept);
      const Tensor flat = call<"flatten.using_ints">(s, labels);
      const Tensor weights = call<"gather">(s, weight, 0, flat);
      count = sum(weights);
    } else {
      count = sum(kept);
    }
    const Tensor total = sum(smooth);
    ret = div(total, count);
  }
  const Tensor rest = call<"mul.Scalar">(s, ret, smoothing / double(classes));
  const Tensor first = call<"mul.Scalar">(s, nll, 1 - smoothing);
  c.result(add(first, rest));
}

void cross_entropy_body(Call& c) {
  const Tensor &self = c.tensor("self"), &target = c.tensor("target");
  const double smoothing = c.real("label_smoothing");
  const bool probabilities = self.sizes() == target.sizes();
  if (probabilities && !is_floating(target.dtype()))
    c.error(fmt::format("targets of the input's sizes are probabilities and must be floating; got {}",
                        describe(target)));
  const Tensor input = call<"log_softmax.int">(c.session, self, class_dim(self), self.dtype());
  if (probabilities) return probability_targets(c, input, smoothing);
  if (smoothing > 0) return smoothed_targets(c, input, smoothing);
  c.result(nll_loss_of(c, input, target));
}

constexpr Op nll_loss(void (*host_code)(Call&)) {
  return {.schema =
              "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
              "ignore_index) -> (Tensor output, Tensor total_weight)",
          .summary = "−self[target] per row, and the sum of the weights",
          .meta = nll_loss_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"self"},
                           {"self", "target", "weight", "total_weight"},
                           nll_gradient<"nll_loss_backward">}},
          .flops = [](const Call& c) -> FlopCount { return {.own = 2 * c.tensor("target").numel()}; },
          .examples = {"f32[4,3] i64[4] None 1 -100", "f32[4,3] i64[4] f32[3] 0 -100"},
          .facts = {.node = "NllLossBackward0", .no_gradient_for = {"total_weight"}}};
}

constexpr Op nll_loss_backward(void (*host_code)(Call&)) {
  return {.schema =
              "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
              "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
          .summary = "zeros with −grad at the targets",
          .meta = like_self_meta,
          .host_code = {{DeviceType::cuda, host_code}},
          .derivatives = {{{"grad_output"}, {"target", "weight"}, nll_double_gradient<"nll_loss">},
                          {{"self"}, {}, [](Backward& b) -> Gradients { return {zeros_like(b.grad())}; }}},
          .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("target").numel()}; },
          .examples = {"f32[] f32[4,3] i64[4] None 1 -100 f32[]"}};
}

constexpr Op kClassLoss[] = {
    {.schema = "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
               "ignore_index=-100, float label_smoothing=0.) -> Tensor",
     .summary = "−log softmax(self)[target]",
     .meta = composite(cross_entropy_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,3] i64[4]", "f32[4,3,2,2] i64[4,2,2] f32[3] 2", "f32[4,3] f32[4,3]",
                  "f32[4,3] i64[4] None 1 -100 0.1"}},
    {.schema = "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
               "ignore_index=-100) -> Tensor",
     .summary = "−self[target] for any number of dimensions",
     .meta = composite(nll_loss_nd_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,3] i64[4]", "f32[4,3,2] i64[4,2]", "f32[4,3,2,2] i64[4,2,2]"}},
    {.schema = "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
               "ignore_index=-100) -> Tensor",
     .summary = "−self[target] per row",
     .meta = composite(first_result_body<"nll_loss_forward">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,3] i64[4]", "f32[4,3] i64[4] f32[3] 0"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema = "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
               "ignore_index=-100) -> Tensor",
     .summary = "−self[target] per pixel",
     .meta = composite(first_result_body<"nll_loss2d_forward">),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[4,3,2,2] i64[4,2,2]"},
     .facts = {.autocast = Autocast::fp32}},
    before({2, 15}, nll_loss(nll_loss_cuda<false>)),
    since({2, 15}, nll_loss(nll_loss_cuda<true>)),
    {.schema = "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
               "ignore_index) -> (Tensor output, Tensor total_weight)",
     .summary = "−self[target] per pixel, and the sum of the weights",
     .meta = nll_loss2d_meta,
     .host_code = {{DeviceType::cuda, nll_loss2d_cuda}},
     .derivatives = {{{"self"},
                      {"self", "target", "weight", "total_weight"},
                      nll_gradient<"nll_loss2d_backward">}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 2 * c.tensor("target").numel()}; },
     .examples = {"f32[4,3,2,2] i64[4,2,2] None 1 -100", "f32[4,3,2,2] i64[4,2,2] f32[3] 0 -100"},
     .facts = {.node = "NllLoss2DBackward0", .no_gradient_for = {"total_weight"}}},
    before({2, 15}, nll_loss_backward(nll_loss_backward_cuda<false>)),
    since({2, 15}, nll_loss_backward(nll_loss_backward_cuda<true>)),
    {.schema = "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
               "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
     .summary = "zeros with −grad at the targets",
     .meta = like_self_meta,
     .host_code = {{DeviceType::cuda, nll_loss2d_backward_cuda}},
     .derivatives = {{{"grad_output"}, {"target", "weight"}, nll_double_gradient<"nll_loss2d">},
                     {{"self"}, {}, [](Backward& b) -> Gradients { return {zeros_like(b.grad())}; }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = c.tensor("target").numel()}; },
     .examples = {"f32[] f32[4,3,2,2] i64[4,2,2] None 1 -100 f32[]"}}};

}  // namespace

Tables class_loss_operators() {
  static constexpr Records tables[] = {kClassLoss};
  return tables;
}

}  // namespace metaprof
