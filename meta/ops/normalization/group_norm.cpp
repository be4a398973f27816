// Group normalisation.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/normalization/normalization.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

void check(const Call& c, const Tensor& input, int64_t groups) {
  if (input.dim() < 2 || groups < 1 || input.size(1) % groups != 0)
    c.error(fmt::format("the channels of {} do not divide into {} groups", describe(input), groups));
  for (Name name : {Name("weight"), Name("bias")})
    if (c.given(name) && (c.tensor(name).dim() != 1 || c.tensor(name).numel() != input.size(1)))
      c.error(fmt::format("'{}' should have one element per channel of {}; got {}", name.text,
                          describe(input), describe(c.tensor(name))));
}

// On CUDA the input is made row-major here, outside of the differentiable operator: the copy is what is
// saved.
void group_norm_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const int64_t groups = c.integer("num_groups");
  check(c, input, groups);
  const Tensor ready =
      contiguous(input, input.is_cuda() ? MemoryFormat::contiguous : suggested_format(input));
  const Tensor weight = c.given("weight") ? contiguous(c.tensor("weight")) : Tensor();
  const Tensor bias = c.given("bias") ? contiguous(c.tensor("bias")) : Tensor();
  const int64_t images = input.size(0), channels = input.size(1);
  int64_t positions = 1;
  for (int64_t d = 2; d < input.dim(); ++d) positions = multiply(positions, input.size(d));
  Results out = call_all<"native_group_norm">(c.session, ready, weight, bias, images, channels, positions,
                                              groups, c["eps"]);
  c.result(out[0]);
}

// Statistics have the input's dtype, or fp32 if the parameters have another (mixed_data_type.h).
DType group_statistics_type(const Call& c, const Tensor& input) {
  for (Name name : {Name("weight"), Name("bias")})
    if (c.op.schema.find(name.hash) >= 0 && c.given(name) && c.tensor(name).dtype() != input.dtype())
      return DType::f32;
  return input.dtype();
}

Sizes strides_of(const Tensor& input) {
  return strides_in(input.is_cuda() ? MemoryFormat::contiguous : suggested_format(input), input.sizes());
}

void native_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  check(c, input, c.integer("group"));
  const Sizes statistics{c.integer("N"), c.integer("group")};
  c.output(input.sizes(), strides_of(input), input.dtype());
  c.output(statistics, group_statistics_type(c, input));
  c.output(statistics, group_statistics_type(c, input));
}

// Statistics in fp32 beside 16-bit ones, [images, groups] each.
struct WideStatistics {
  explicit WideStatistics(Call& c) {
    const bool half = is_reduced_floating(c.tensor("input").dtype());
    if (!half || !c.platform().framework.casts_group_norm_statistics) return;
    const Sizes groups{c.integer("N"), c.integer("group")};
    mean = c.temporary(groups, DType::f32);
    deviation = c.temporary(groups, DType::f32);
  }
  Tensor mean, deviation;
};

// Scale and shift per image and channel (recorded: `shapes/group_norm`).
void native_cuda(Call& c) {
  c.allocate_all();
  const bool affine = c.given("weight") || c.given("bias");
  if (!affine || c.integer("HxW") <= 1 || c.result_tensor().numel() == 0) return;
  const DType accumulated = accumulate_type(c.tensor("input").dtype());
  const Sizes channels{c.integer("N"), c.integer("C")};
  const WideStatistics wide(c);
  const Tensor scale = c.temporary(channels, accumulated), shift = c.temporary(channels, accumulated);
}

void native_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const auto& wants = c["output_mask"].booleans();
  const DType parameters = weight.defined() ? weight.dtype() : input.dtype();
  if (wants[0]) {
    c.output(input.sizes(), strides_of(input), input.dtype());
  } else {
    c.no_output();
  }
  output_if(c, wants[1], Sizes{c.integer("C")}, parameters);
  output_if(c, wants[2], Sizes{c.integer("C")}, parameters);
}

// aten/src/ATen/native/cuda/group_norm_kernel.cu: sums per channel, then three factors of the input's
// gradient; the factor with the weight has its memory last.
void native_backward_cuda(Call& c) {
  c.allocate_all();
  if (c.tensor("input").numel() == 0) return;
  const DType accumulated = accumulate_type(c.tensor("input").dtype());
  const Sizes channels{c.integer("N"), c.integer("C")}, groups{c.integer("N"), c.integer("group")};
  const Tensor grad_input_sums = c.temporary(channels, accumulated),
               grad_sums = c.temporary(channels, accumulated);
  if (!c["output_mask"].booleans()[0]) return;
  Tensor first;
  const Tensor second = c.temporary(groups, accumulated), third = c.temporary(groups, accumulated);
  if (c.given("weight") && c.integer("HxW") > 1) first = c.temporary(channels, accumulated);
}

// FunctionsManual.cpp, infinitely_differentiable_native_group_norm_backward: while a second derivative is
// recorded, or where the statistics have gradients.
Gradients differentiable_gradients(Backward& b) {
  Session& s = b.session;
  const int64_t images = b.integer("N"), channels = b.integer("C"), positions = b.integer("HxW"),
                groups = b.integer("group"), width = channels / groups;
  const double share = 1.0 / double(width * positions);
  const Sizes whole{images, groups, width, positions}, single{images, groups, 1, 1};
  const Tensor x = reshape(b("input"), whole), mean_of_x = reshape(b("result1"), single),
               rstd = reshape(b("result2"), single);
  auto last = [&](const Tensor& sums, int64_t dim) { return call<"unsqueeze_">(s, sums, dim); };
  Tensor outer, along, level, weight;
  if (b.grad(0).defined()) {
    outer = reshape(b.grad(0), whole);
    along = last(sum(outer * x, Sizes{3}, false), -1);
    level = last(sum(outer, Sizes{3}, false), -1);
  }
  if (b("weight").defined()) weight = reshape(b("weight"), Sizes{1, groups, width, 1});
  auto by_weight = [&](const Tensor& tensor) { return weight.defined() ? tensor * weight : tensor; };
  Gradients gradients{Tensor(), Tensor(), Tensor()};
  if (b.wants("input")) {
    const Tensor square = rstd * rstd;
    call<"reciprocal_">(s, square);
    const Tensor variance = call<"clamp_min">(s, square - b["eps"], 0);
    const Tensor cube = rstd * rstd * rstd;
    Tensor result;
    if (outer.defined()) {
      const Tensor scale = by_weight(rstd);
      Tensor tilt = last(sum(by_weight(along), Sizes{2}, false), -2);
      Tensor shift = last(sum(by_weight(level), Sizes{2}, false), -2);
      tilt = (shift * mean_of_x - tilt) * cube * share;
      const Tensor rest = shift * rstd * share;
      shift = neg(tilt) * mean_of_x - rest;
      const Tensor tilted = tilt * x;
      result = reshape(scale * outer + tilted + shift, b("input").sizes());
    }
    if (b.grad(2).defined() || b.grad(1).defined()) {
      Tensor of_statistics;
      if (b.grad(2).defined()) {
        const Tensor of_variance = cube * -0.5 * reshape(b.grad(2), single);
        const Tensor centred = x - mean(x, Sizes{2, 3}, true);
        of_statistics = of_variance * (2 * share) * centred;
      }
      if (b.grad(1).defined()) {
        const Tensor spread = expand(reshape(b.grad(1), single), whole) / int64_t{width * positions};
        of_statistics = of_statistics.defined() ? of_statistics + spread : spread;
      }
      const Tensor more = reshape(of_statistics, b("input").sizes());
      result = result.defined() ? result + more : more;
    }
    gradients[0] = result;
  }
  if (outer.defined() && b.wants("weight"))
    gradients[1] = reshape(sum((along - level * mean_of_x) * rstd, Sizes{0}, false), b.sizes("weight"));
  if (outer.defined() && b.wants("bias"))
    gradients[2] = reshape(sum(level, Sizes{0}, false), b.sizes("bias"));
  return gradients;
}

Gradients group_norm_gradients(Backward& b) {
  if (b.session.modes.grad || b.grad(1).defined() || b.grad(2).defined()) return differentiable_gradients(b);
  if (!b.grad(0).defined()) return {Tensor(), Tensor(), Tensor()};
  const TensorImpl& input = *b.shape("input");
  const MemoryFormat format = input.device.is_cuda() ? MemoryFormat::contiguous : suggested_format(input);
  const Tensor grad = contiguous(b.grad(), format), ready = contiguous(b("input"), format);
  const Value::Booleans wants{b.wants("input"), b.wants("weight"), b.wants("bias")};
  Results gradients =
      call_all<"native_group_norm_backward">(b.session, grad, ready, b("result1"), b("result2"), b("weight"),
                                             b["N"], b["C"], b["HxW"], b["group"], wants);
  return {gradients[0], gradients[1], gradients[2]};
}

constexpr Op kGroupNorm[] = {
    {.schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
               "eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     .summary = "(input − mean) / deviation · weight + bias, per group of channels",
     .meta = composite(group_norm_body),
     .host_code = {},
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,6,4,4] 3 f32[6] f32[6]", "f32[2,6] 3"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "
               "SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "group_norm: output, mean, inverse deviation",
     .meta = native_meta,
     .host_code = {{DeviceType::cuda, native_cuda}},
     .derivatives = {{{"input", "weight", "bias"},
                      {"input", "weight", "result1", "result2"},
                      group_norm_gradients}},
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,6,4,4] f32[6] f32[6] 2 6 16 3 1e-5"}},
    {.schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
               "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> "
               "(Tensor, Tensor, Tensor)",
     .summary = "gradients of group_norm",
     .meta = native_backward_meta,
     .host_code = {{DeviceType::cuda, native_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount { return {.own = 13 * c.tensor("input").numel()}; },
     .examples = {"f32[2,6,4,4] f32[2,6,4,4] f32[2,3] f32[2,3] f32[6] 2 6 16 3 (True True True)"}}};

}  // namespace

Tables group_norm_operators() {
  static constexpr Records tables[] = {kGroupNorm};
  return tables;
}

}  // namespace metaprof
