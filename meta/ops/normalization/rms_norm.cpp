// Root-mean-square normalisation: one kernel, or what it is made of.

#include <limits>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/normalization/normalization.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

// aten/src/ATen/native/layer_norm.cpp, rms_norm_composite, 2.11: in fp32 (f64) whatever comes in. Before 2.8 the weight
// is multiplied last, in the input's type (recorded: grouped.bf16 of tools/record/version_programs.py with 2.6 and 2.8; 2.7 was not).
template <bool weight_last>
std::pair<Tensor, Tensor> composed(Call& c) {
  const Tensor& input = c.tensor("input");
  normalized_rows(c, input, c.ints("normalized_shape"));
  Sizes dims;
  for (size_t i = 0; i < c.ints("normalized_shape").size(); ++i) dims.push_back(input.dim() - int64_t(i) - 1);
  const DType compute = accumulate_type(input.dtype());
  const Tensor wide = to(input, compute);
  const double epsilon = c.given("eps")          ? c.real("eps")
                         : compute == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                 : double(std::numeric_limits<float>::epsilon());
  Tensor factor;
  {
    const Tensor squares = pow(wide, 2);
    const Tensor mean = call<"mean.dim">(c.session, squares, dims, true);
    factor = call<"rsqrt">(c.session, call<"add_.Scalar">(c.session, mean, epsilon));
  }
  Tensor out = mul(wide, factor);
  if (weight_last) {
    out = call<"type_as">(c.session, out, input);
    return {c.given("weight") ? mul(out, c["weight"]) : out, factor};
  }
  if (c.given("weight")) out = mul(out, c["weight"]);
  if (suggested_format(input) == MemoryFormat::contiguous) out = contiguous(out);
  return {call<"type_as">(c.session, out, input), factor};
}

void rms_norm_body(Call& c) {
  const Tensor& input = c.tensor("input");
  const bool mixed = c.given("weight") && c.tensor("weight").dtype() != input.dtype();
  // Only CUDA has the kernel.
  if (!input.is_cuda() || mixed || suggested_format(input) != MemoryFormat::contiguous ||
      is_complex(input.dtype()))
    return c.result(composed<false>(c).first);
  Results out = call_all<"_fused_rms_norm">(c.session, input, c["normalized_shape"], c["weight"], c["eps"]);
  c.result(out[0]);
}

DType rms_statistics_type(const Tensor& input) { return accumulate_type(input.dtype()); }

void fused_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  const NormalizedRows rows = normalized_rows(c, input, c.ints("normalized_shape"));
  c.output(input.sizes(), input.dtype());
  c.output(rows.statistics, rms_statistics_type(input));
}

void fused_cuda(Call& c) {
  const Tensor input = c.contiguous(c.tensor("input"));
  const Tensor weight = c.given("weight") ? c.contiguous(c.tensor("weight")) : Tensor();
  c.allocate_all();
}

void fused_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const auto& wants = c["output_mask"].booleans();
  const Sizes& shape = c.ints("normalized_shape");
  normalized_rows(c, input, shape);
  output_if(c, wants[0], input.sizes(), input.dtype());
  output_if(c, wants[1] && weight.defined(), shape, weight.defined() ? weight.dtype() : input.dtype());
}

void fused_backward_cuda(Call& c) {
  const Tensor input = c.contiguous(c.tensor("input"));
  const Tensor weight = c.given("weight") ? c.contiguous(c.tensor("weight")) : Tensor();
  const NormalizedRows rows = normalized_rows(c, input, c.ints("normalized_shape"));
  c.allocate_all();
  if (rows.count == 0) return;
  const Tensor grad = c.contiguous(c.tensor("grad_out"));
  summed_parameter_gradients(c, rows, {1});
}

// FunctionsManual.cpp, infinitely_differentiable_native_rms_norm_backward: while a second derivative is
// recorded, or where the inverse root mean square has a gradient.
Gradients differentiable_rms_gradients(Backward& b) {
  const Tensor &input = b("input"), rstd = view(b("result1"), b.sizes("result1")), &weight = b("weight"),
               &of_out = b.grad(0), &of_rstd = b.grad(1);
  const Sizes& shape = b.ints("normalized_shape");
  const int64_t axis = input.dim() - int64_t(shape.size());
  const double count = double(numel(shape));
  const Tensor cube = pow(rstd, 3);
  Tensor outer, of_input, of_weight;
  if (of_out.defined()) outer = weight.defined() ? of_out * weight : of_out;
  if (b.wants("input")) {
    Sizes inner;
    for (int64_t d = axis; d < input.dim(); ++d) inner.push_back(d);
    if (outer.defined()) {
      const Tensor along = sum(input * outer, inner, true), tilt = input * cube / count * along;
      of_input = rstd * outer - tilt;
    }
    if (of_rstd.defined()) {
      const Tensor of_root = neg(input * cube / count) * view(of_rstd, rstd.sizes());
      of_input = of_input.defined() ? of_input + of_root : of_root;
    }
  }
  if (b.wants("weight") && of_out.defined()) {
    const Tensor normalized = input * rstd;
    of_weight = of_out * normalized;
    Sizes rows;
    for (int64_t d = 0; d < axis; ++d) rows.push_back(d);
    if (axis > 0) of_weight = sum(of_weight, rows, false);
  }
  return {of_input, of_weight};
}

Gradients fused_gradients(Backward& b) {
  if (b.session.modes.grad || b.grad(1).defined()) return differentiable_rms_gradients(b);
  if (!b.grad(0).defined()) return {Tensor(), Tensor()};
  const Value::Booleans wants{b.wants("input"), b.wants("weight")};
  Results gradients = call_all<"_fused_rms_norm_backward">(
      b.session, b.grad(), b("input"), b["normalized_shape"], b("result1"), b("weight"), wants);
  return {gradients[0], gradients[1]};
}

template <bool weight_last>
void composed_rms_norm_body(Call& c) {
  c.result(composed<weight_last>(c).first);
}

constexpr Op rms_norm(void (*body)(Call&)) {
  return composite_of(
      "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
      "input / root mean square · weight, per row", body, {"f32[2,3,4] (4) f32[4] 1e-6", "f32[2,3] (3)"});
}

// There is a kernel from 2.9 on; and from 2.12 on autocast gives it fp32 (aten/src/ATen/autocast_mode.h; recorded:
// `shapes/autocast/bf16/rms_norm-4x128-256-256`).
constexpr Op kRmsNorms[] = {before({2, 8}, rms_norm(composed_rms_norm_body<true>)),
                            since({2, 8}, before({2, 9}, rms_norm(composed_rms_norm_body<false>))),
                            since({2, 9}, before({2, 12}, rms_norm(rms_norm_body))),
                            since({2, 12}, fp32_under_autocast(rms_norm(rms_norm_body)))};

constexpr Op kRmsNorm[] = {
    {.schema = "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
               "(Tensor, Tensor)",
     .summary = "rms_norm by one kernel: output, inverse root mean square",
     .meta = fused_meta,
     .host_code = {{DeviceType::cuda, fused_cuda}},
     .derivatives = {{{"input", "weight"}, {"input", "weight", "result1"}, fused_gradients}},
     .flops = elementwise_flops<4>,
     .examples = {"f32[2,3,4] (4) f32[4] 1e-6"}},
    {.schema = "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, "
               "Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
     .summary = "gradients of rms_norm",
     .meta = fused_backward_meta,
     .host_code = {{DeviceType::cuda, fused_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount { return {.own = 10 * c.tensor("input").numel()}; },
     .examples = {"f32[2,3] f32[2,3] (3) f32[2,1] f32[3] (True True)"}}};

}  // namespace

Tables rms_norm_operators() {
  static constexpr Records tables[] = {kRmsNorms, kRmsNorm};
  return tables;
}

}  // namespace metaprof
