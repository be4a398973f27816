// What training for fewer bits rounds (aten/src/ATen/native/quantized/FakeQuantPerTensorAffine.cpp and
// FakeQuantPerChannelAffine.cpp, cuda/FusedObsFakeQuant.cu, PyTorch 2.11). Each gives self as it would come back from an
// integer between two bounds, and a mask for the gradient: where self lies between them.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void masked_meta(Call& c) {
  c.output_like(c.tensor("self"));
  c.output_like(c.tensor("self"), DType::b8);
}

Gradients gradient_by_mask(Backward& b) {
  return {call<"fake_quantize_per_tensor_affine_cachemask_backward">(b.session, b.grad(), b("mask"))};
}

constexpr Op with_mask(std::string_view schema, std::string_view summary, std::string_view example,
                       void (*kernel)(Call&) = nullptr) {
  Op op = {.schema = schema,
           .summary = summary,
           .meta = masked_meta,
           .derivatives = {{{"self"}, {"mask"}, gradient_by_mask}},
           .flops = elementwise_flops<1>,
           .examples = {example}};
  if (kernel) op.host_code = {{DeviceType::cuda, kernel}};
  return op;
}

// --- scale and zero point of tensors

void rounded_by_tensors(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor enabled = call<"ones">(c.session, Sizes{1}, DType::i64, Value(), self.device());
  c.result(call_all<"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams">(
      c.session, self, c.tensor("scale"), c.tensor("zero_point"), enabled, c["quant_min"],
      c["quant_max"])[0]);
}

Tensor by_channel(const Call& c, const Tensor& zero_point) {
  return call_all<"fake_quantize_per_channel_affine_cachemask">(c.session, c.tensor("self"),
                                                                c.tensor("scale"), zero_point, c["axis"],
                                                                c["quant_min"], c["quant_max"])[0];
}

void rounded_by_channel(Call& c) { c.result(by_channel(c, c.tensor("zero_point"))); }

// Whether all zero points that are whole numbers lie between the bounds is read on the host: the least, the greatest.
void check_zero_points(const Call& c, DType dtype) {
  if (is_floating(dtype)) return;
  const Tensor least = c.session.empty({}, dtype, c.device()),
               greatest = c.session.empty({}, dtype, c.device());
}

void by_channel_kernel(Call& c) {
  check_zero_points(c, c.tensor("zero_point").dtype());
  c.allocate_all();
}

// --- scale and zero point that are learned: gradients of each element, which are added up

void learned_kernel(Call& c) {
  const BelowAutograd below(c.session);
  c.result(call_all<"fake_quantize_per_tensor_affine_cachemask">(c.session, c.tensor("self"), 1.0, 0,
                                                                 c["quant_min"], c["quant_max"])[0]);
}

void learned_by_channel_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor whole = to(call<"round">(c.session, c.tensor("zero_point")), DType::i32);
  c.result(by_channel(c, whole));
}

// The sums of a gradient of each element: of all of them, or of each channel's.
Tensor sum_of(const Call& c, const Tensor& gradients, bool by_channel) {
  if (!by_channel) return unsqueeze(sum(gradients), 0);
  Sizes others;
  for (int64_t d = 0; d < gradients.dim(); ++d)
    if (d != wrap_dim(c.integer("axis"), gradients.dim())) others.push_back(d);
  return sum(gradients, others, false);
}

template <bool by_channel>
void learned_gradient_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor& self = c.tensor("self");
  Tensor whole;
  if constexpr (by_channel) {
    whole = to(c.tensor("zero_point"), DType::i32);
    check_zero_points(c, DType::i32);
  }
  const Tensor gradient = empty_like(self), scales = empty_like(self), zero_points = empty_like(self);
  const Tensor scale = sum_of(c, scales, by_channel), zero_point = sum_of(c, zero_points, by_channel);
  c.result(gradient);
  c.result(scale);
  c.result(zero_point);
}

Gradients learned_gradient(Backward& b) {
  Results all = call_all<"_fake_quantize_learnable_per_tensor_affine_backward">(
      b.session, b.grad(), b("self"), b("scale"), b("zero_point"), b["quant_min"], b["quant_max"],
      b["grad_factor"]);
  return {all[0], all[1], all[2]};
}
Gradients learned_gradient_by_channel(Backward& b) {
  Results all = call_all<"_fake_quantize_learnable_per_channel_affine_backward">(
      b.session, b.grad(), b("self"), b("scale"), b("zero_point"), b["axis"], b["quant_min"], b["quant_max"],
      b["grad_factor"]);
  return {all[0], all[1], all[2]};
}

constexpr Op learned(std::string_view schema, std::string_view summary, std::string_view example,
                     void (*kernel)(Call&), Formula gradient) {
  return {.schema = schema,
          .summary = summary,
          .meta = kernel,
          .derivatives = {{{"self", "scale", "zero_point"}, {"self", "scale", "zero_point"}, gradient}},
          .flops = elementwise_flops<1>,
          .examples = {example}};
}

constexpr Op gradient_of_learned(std::string_view schema, std::string_view example, void (*kernel)(Call&)) {
  return {.schema = schema,
          .summary = "gradients of what is rounded, of scale and of zero point",
          .meta = kernel,
          .derivatives = not_differentiable,
          .flops = input_flops,
          .examples = {example}};
}

// --- with an observer: running bounds, from which scale and zero point follow. Whether it is on is data: taken to be.

Tensor rows_of_channels(const Call& c, const Tensor& self) {
  const int64_t axis = wrap_dim(c.integer("ch_axis"), self.dim());
  const Tensor channels_first = axis == 0 ? self : transpose(self, 0, axis);
  return reshape(channels_first, Sizes{self.size(axis), -1});
}

// Buffers of an observer that has seen nothing get an element for each channel.
void resize_observer(const Call& c, int64_t channels) {
  for (const Name name : {Name("running_min"), Name("running_max"), Name("scale"), Name("zero_point")})
    if (c.tensor(name).numel() != channels) call<"resize_">(c.session, c.tensor(name), Sizes{channels});
}

void observed_body(Call& c) {
  c.result(call_all<"_fused_moving_avg_obs_fq_helper">(
      c.session, c.tensor("self"), c.tensor("observer_on"), c.tensor("fake_quant_on"),
      c.tensor("running_min"), c.tensor("running_max"), c.tensor("scale"), c.tensor("zero_point"),
      c["averaging_const"], c["quant_min"], c["quant_max"], c["ch_axis"], c["per_row_fake_quant"],
      c["symmetric_quant"])[0]);
}

void observed_cuda(Call& c) {
  const BelowAutograd below(c.session);
  const Tensor self = c.contiguous(c.tensor("self"));
  if (!c["per_row_fake_quant"].boolean()) {
    { const Results bounds = call_all<"aminmax">(c.session, self); }
    return c.allocate_all();
  }
  {
    const Tensor rows = rows_of_channels(c, self);
    resize_observer(c, rows.size(0));
    const Results bounds = call_all<"aminmax">(c.session, rows, 1);
  }
  c.allocate(1);
  c.allocate(0);
}

constexpr Op kFakeQuantization[] = {
    composite_of("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor "
                 "zero_point, int quant_min, int quant_max) -> Tensor",
                 "self as it would come back from an integer between two bounds", rounded_by_tensors,
                 {"f32[2,3] f32[1] i32[1] 0 255"}),
    with_mask("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
              "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, "
              "Tensor mask)",
              "the same, and where self lies between the bounds", "f32[2,3] f32[1] i32[1] i64[1] 0 255"),
    composite_of("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
                 "int quant_min, int quant_max) -> Tensor",
                 "each channel as it would come back from an integer between two bounds", rounded_by_channel,
                 {"f32[2,3] f32[2] i32[2] 0 0 255"}),
    with_mask("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int "
              "axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
              "the same, and where self lies between the bounds", "f32[2,3] f32[2] i32[2] 0 0 255",
              by_channel_kernel),
    learned("_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int "
            "quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
            "self as it would come back from an integer; scale and zero point are learned",
            "f32[2,3] f32[1] f32[1] 0 255", learned_kernel, learned_gradient),
    gradient_of_learned(
        "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
        "zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)",
        "f32[2,3] f32[2,3] f32[1] f32[1] 0 255", learned_gradient_kernel<false>),
    learned("_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int "
            "axis, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
            "each channel as it would come back from an integer; scales and zero points are learned",
            "f32[2,3] f32[2] f32[2] 0 0 255", learned_by_channel_kernel, learned_gradient_by_channel),
    gradient_of_learned("_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, "
                        "Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float "
                        "grad_factor=1.0) -> (Tensor, Tensor, Tensor)",
                        "f32[2,3] f32[2,3] f32[2] f32[2] 0 0 255", learned_gradient_kernel<true>),
    composite_of("fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
                 "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, "
                 "float averaging_const, int quant_min, int quant_max, int ch_axis, bool "
                 "per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
                 "self is observed, and rounded by what has been", observed_body,
                 {"f32[2,3] i64[1] i64[1] f32[] f32[] f32[1] i32[1] 0.01 0 255 0"}),
    with_mask("_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
              "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, "
              "float averaging_const, int quant_min, int quant_max, int ch_axis, bool "
              "per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
              "the same, and where self lies between the bounds",
              "f32[2,3] i64[1] i64[1] f32[] f32[] f32[1] i32[1] 0.01 0 255 0", observed_cuda)};

}  // namespace

Tables fake_quantization_operators() {
  static constexpr Records tables[] = {kFakeQuantization};
  return tables;
}

}  // namespace metaprof
