// Group normalisation.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
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

// What becomes of a channels_last input on CUDA: until 2.13 it is made row-major outside of the differentiable operator,
// so that the copy is saved; in 2.14 inside; from 2.15 on it stays as it is (aten/src/ATen/native/group_norm.cpp;
// recorded: `shapes/group_norm/*-fmtchannels_last`).
enum class ChannelsLast : uint8_t { copied_outside, copied_inside, kept };

template <ChannelsLast channels_last>
void group_norm_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const int64_t groups = c.integer("num_groups");
  check(c, input, groups);
  const bool copied = input.is_cuda() && channels_last == ChannelsLast::copied_outside;
  const Tensor ready = contiguous(input, copied ? MemoryFormat::contiguous : suggested_format(input));
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

// Of the result, and what both operators work with.
template <ChannelsLast channels_last>
MemoryFormat format_of(const Tensor& input) {
  const bool keeps = !input.is_cuda() || channels_last == ChannelsLast::kept;
  return keeps ? suggested_format(input) : MemoryFormat::contiguous;
}

template <ChannelsLast channels_last>
void native_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  check(c, input, c.integer("group"));
  const Sizes statistics{c.integer("N"), c.integer("group")};
  c.output(input.sizes(), strides_in(format_of<channels_last>(input), input.sizes()), input.dtype());
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
template <ChannelsLast channels_last>
void native_cuda(Call& c) {
  const Tensor input = contiguous(c.tensor("input"), format_of<channels_last>(c.tensor("input")));
  c.allocate_all();
  if (c.result_tensor().numel() == 0) return;
  const bool affine = c.given("weight") || c.given("bias"), scales = affine && c.integer("HxW") > 1;
  if (!scales && channels_last != ChannelsLast::kept) return;
  const WideStatistics wide(c);
  if (!scales) return;
  const DType accumulated = accumulate_type(c.tensor("input").dtype());
  const Sizes channels{c.integer("N"), c.integer("C")};
  const Tensor scale = c.temporary(channels, accumulated), shift = c.temporary(channels, accumulated);
}

template <ChannelsLast channels_last>
void native_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const auto& wants = c["output_mask"].booleans();
  const DType parameters = weight.defined() ? weight.dtype() : input.dtype();
  if (wants[0]) {
    c.output(input.sizes(), strides_in(format_of<channels_last>(input), input.sizes()), input.dtype());
  } else {
    c.no_output();
  }
  output_if(c, wants[1], Sizes{c.integer("C")}, parameters);
  output_if(c, wants[2], Sizes{c.integer("C")}, parameters);
}

// aten/src/ATen/native/cuda/group_norm_kernel.cu: sums per channel, then three factors of the input's
// gradient; the factor with the weight has its memory last. From 2.15 on a single position has no sums, and a
// channels_last input no such factor.
template <ChannelsLast channels_last>
void native_backward_cuda(Call& c) {
  const MemoryFormat format = format_of<channels_last>(c.tensor("input"));
  const Tensor grad = contiguous(c.tensor("grad_out"), format), input = contiguous(c.tensor("input"), format);
  c.allocate_all();
  if (input.numel() == 0) return;
  const DType accumulated = accumulate_type(input.dtype());
  const Sizes channels{c.integer("N"), c.integer("C")}, groups{c.integer("N"), c.integer("group")};
  const bool several = c.integer("HxW") > 1;
  Tensor grad_input_sums, grad_sums;
  if (several || channels_last != ChannelsLast::kept) {
    grad_input_sums = c.temporary(channels, accumulated);
    grad_sums = c.temporary(channels, accumulated);
  }
  if (!c["output_mask"].booleans()[0]) return;
  Tensor first;
  const Tensor second = c.temporary(groups, accumulated), third = c.temporary(groups, accumulated);
  if (c.given("weight") && several && format == MemoryFormat::contiguous)
    first = c.temporary(channels, accumulated);
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
      Tensor more = reshape(of_statistics, b("input").sizes());
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

// What the gradients of mean and inverse deviation add to that of the input (recorded: `opinfo/native_group_norm`, 2.15).
Tensor with_gradients_of_statistics(Backward& b, Tensor gradient) {
  const int64_t images = b.integer("N"), groups = b.integer("group");
  const int64_t elements = b.integer("C") / groups * b.integer("HxW");
  const Sizes rows{images, groups, elements}, single{images, groups, 1};
  Tensor of_variance, of_statistics;
  if (b.grad(2).defined()) {
    const Tensor rstd = reshape(b("result2"), single);
    of_variance = rstd * -0.5 * rstd * rstd * view(b.grad(2), single);
    const Tensor x = reshape(b("input"), rows), centre = mean(x, Sizes{2}, true), centred = x - centre;
    const Tensor scaled = of_variance * (2.0 / double(elements));
    of_statistics = scaled * centred;
  }
  if (b.grad(1).defined()) {
    const Tensor spread = expand(reshape(b.grad(1), single), rows) / elements;
    of_statistics = of_statistics.defined() ? of_statistics + spread : spread;
  }
  Tensor more = reshape(of_statistics, b("input").sizes());
  of_statistics.reset();
  if (!gradient.defined()) return more;
  gradient = gradient + more;
  return gradient;
}

template <ChannelsLast channels_last>
Gradients group_norm_gradients(Backward& b) {
  const bool of_statistics = b.grad(1).defined() || b.grad(2).defined(),
             kept = channels_last == ChannelsLast::kept;
  if (b.session.modes.grad || (of_statistics && !kept)) return differentiable_gradients(b);
  Gradients gradients{Tensor(), Tensor(), Tensor()};
  if (b.grad(0).defined()) {
    const Value::Booleans wants{b.wants("input"), b.wants("weight"), b.wants("bias")};
    const bool copied = b.shape("input")->device.is_cuda() && channels_last == ChannelsLast::copied_outside;
    const MemoryFormat format = copied ? MemoryFormat::contiguous : suggested_format(b("input"));
    const Tensor grad = kept ? b.grad() : contiguous(b.grad(), format),
                 input = contiguous(b("input"), format);
    Results all =
        call_all<"native_group_norm_backward">(b.session, grad, input, b("result1"), b("result2"),
                                               b("weight"), b["N"], b["C"], b["HxW"], b["group"], wants);
    for (size_t i = 0; i < 3; ++i) gradients[i] = all[i];
  }
  if (of_statistics && b.wants("input"))
    gradients[0] = with_gradients_of_statistics(b, std::move(gradients[0]));
  return gradients;
}

template <ChannelsLast channels_last>
constexpr auto group_norms(const FrameworkRange& versions) {
  std::array ops = {
      Op{.schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                   "eps=1e-05, bool cudnn_enabled=True) -> Tensor",
         .summary = "(input − mean) / deviation · weight + bias, per group of channels",
         .meta = composite(group_norm_body<channels_last>),
         .derivatives = by_body,
         .flops = by_body,
         .examples = {"f32[2,6,4,4] 3 f32[6] f32[6]", "f32[2,6] 3"},
         .facts = {.autocast = Autocast::fp32}},
      Op{.schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
                   "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
         .summary = "group_norm: output, mean, inverse deviation",
         .meta = native_meta<channels_last>,
         .host_code = {{DeviceType::cuda, native_cuda<channels_last>}},
         .derivatives = {{{"input", "weight", "bias"},
                          {"input", "weight", "result1", "result2"},
                          group_norm_gradients<channels_last>}},
         .flops = elementwise_flops<8>,
         .examples = {"f32[2,6,4,4] f32[6] f32[6] 2 6 16 3 1e-5"}},
      Op{.schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
                   "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> "
                   "(Tensor, Tensor, Tensor)",
         .summary = "gradients of group_norm",
         .meta = native_backward_meta<channels_last>,
         .host_code = {{DeviceType::cuda, native_backward_cuda<channels_last>}},
         .derivatives = not_differentiable,
         .flops = [](const Call& c) -> FlopCount { return {.own = 13 * c.tensor("input").numel()}; },
         .examples = {"f32[2,6,4,4] f32[2,6,4,4] f32[2,3] f32[2,3] f32[6] 2 6 16 3 (True True True)"}}};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kGroupNorms = group_norms<ChannelsLast::copied_outside>({.before = {2, 14}}),
               kGroupNorms14 =
                   group_norms<ChannelsLast::copied_inside>({.since = {2, 14}, .before = {2, 15}}),
               kGroupNormsSince15 = group_norms<ChannelsLast::kept>({.since = {2, 15}});

}  // namespace

Tables group_norm_operators() {
  static constexpr Records tables[] = {kGroupNorms, kGroupNorms14, kGroupNormsSince15};
  return tables;
}

}  // namespace metaprof
