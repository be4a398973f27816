// Layer normalisation.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/normalization/normalization.h"
#include "meta/ops/normalization/normalization_gradients.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/platform/platform.h"

namespace metaprof {

NormalizedRows normalized_rows(const Call& c, const Tensor& input, const Sizes& shape) {
  const size_t dims = input.sizes().size();
  bool fits = !shape.empty() && shape.size() <= dims;
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = input.sizes()[dims - shape.size() + i] == shape[i];
  if (!fits)
    c.error(fmt::format("normalized_shape {} should be the last sizes of the input; got {}",
                        to_string(SizesView(shape)), describe(input)));
  for (Name name : {Name("weight"), Name("bias")})
    if (c.op.schema.find(name.hash) >= 0 && c.given(name) && c.tensor(name).sizes() != shape)
      c.error(fmt::format("'{}' should have the sizes {}; got {}", name.text, to_string(SizesView(shape)),
                          describe(c.tensor(name))));
  const Sizes outer = without_last(input.sizes(), shape.size());
  NormalizedRows rows{numel(outer), numel(shape), outer};
  for (size_t i = 0; i < shape.size(); ++i) rows.statistics.push_back(1);
  return rows;
}

int64_t partial_gradient_rows(const Call& c, const NormalizedRows& rows) {
  // aten/src/ATen/native/cuda/layer_norm_kernel.cu, ConfigureAndLaunchGammaBetaBackwardKernel, 2.11
  // (recorded: `shapes/layer_norm`).
  if (!c.platform().framework.sums_layer_norm_in_parts) return 0;
  const int64_t blocks = (rows.width + 31) / 32;
  if (rows.count <= int64_t{64} * 1024) return 0;
  const bool fills_device =
      c.ask([=](const Platform& platform) { return blocks >= platform.hardware.multiprocessors / 2; });
  if (fills_device) return 0;
  return std::min(32768 / blocks, (rows.count + 31) / 32);
}

void summed_parameter_gradients(Call& c, const NormalizedRows& rows, std::initializer_list<size_t> results) {
  const int64_t count = partial_gradient_rows(c, rows);
  if (count == 0) return;
  SmallVector<Tensor, 2> partials;
  for (size_t i : results)
    if (c.results[i].tensor().defined())
      partials.push_back(c.temporary(Sizes{count, rows.width}, c.result_tensor(i).dtype()));
  size_t next = 0;
  for (size_t i : results) {
    const Tensor& gradient = c.results[i].tensor();
    if (!gradient.defined()) continue;
    Tensor total = sum(partials[next++], Sizes{0}, false);
    if (total.sizes() != gradient.sizes()) total = alias(total, gradient.sizes(), gradient.strides(), 0);
    c.results[i] = Value(std::move(total));
  }
  while (!partials.empty()) partials.pop_back();
}

namespace {

// On the host the statistics have the parameters' dtype.
DType layer_statistics_type(const Call& c, const Tensor& input) {
  if (input.is_cuda()) return is_reduced_floating(input.dtype()) ? DType::f32 : input.dtype();
  for (Name name : {Name("weight"), Name("bias")})
    if (c.given(name) && c.tensor(name).dtype() != input.dtype()) return c.tensor(name).dtype();
  return input.dtype();
}

void layer_norm_body(Call& c) {
  Results out = call_all<"native_layer_norm">(c.session, c["input"], c["normalized_shape"], c["weight"],
                                              c["bias"], c["eps"]);
  c.result(out[0]);
}

void native_layer_norm_meta(Call& c) {
  const Tensor& input = c.tensor("input");
  const NormalizedRows rows = normalized_rows(c, input, c.ints("normalized_shape"));
  c.output(input.sizes(), input.dtype());
  c.output(rows.statistics, layer_statistics_type(c, input));
  c.output(rows.statistics, layer_statistics_type(c, input));
}

void native_layer_norm_cuda(Call& c) {
  const Tensor input = c.contiguous(c.tensor("input"));
  const Tensor weight = c.given("weight") ? c.contiguous(c.tensor("weight")) : Tensor();
  const Tensor bias = c.given("bias") ? c.contiguous(c.tensor("bias")) : Tensor();
  c.allocate_all();
}

void native_layer_norm_backward_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight"), &bias = c.tensor("bias");
  const auto& wants = c["output_mask"].booleans();
  const Sizes& shape = c.ints("normalized_shape");
  normalized_rows(c, input, shape);
  output_if(c, wants[0], input.sizes(), input.dtype());
  output_if(c, wants[1], shape, weight.defined() ? weight.dtype() : input.dtype());
  output_if(c, wants[2], shape, bias.defined() ? bias.dtype() : input.dtype());
}

void native_layer_norm_backward_cuda(Call& c) {
  const Tensor input = c.contiguous(c.tensor("input"));
  const Tensor weight = c.given("weight") ? c.contiguous(c.tensor("weight")) : Tensor();
  const Tensor bias = c.given("bias") ? c.contiguous(c.tensor("bias")) : Tensor();
  const NormalizedRows rows = normalized_rows(c, input, c.ints("normalized_shape"));
  c.allocate_all();
  if (rows.count == 0) return;
  const Tensor grad = c.contiguous(c.tensor("grad_out"));
  summed_parameter_gradients(c, rows, {1, 2});
}

Gradients layer_norm_gradients(Backward& b) {
  const Value::Booleans wants{b.wants("input"), b.wants("weight"), b.wants("bias")};
  Results gradients =
      call_all<"native_layer_norm_backward">(b.session, b.grad(), b("input"), b["normalized_shape"],
                                             b("result1"), b("result2"), b("weight"), b("bias"), wants);
  return {gradients[0], gradients[1], gradients[2]};
}

// --- layer norm (layer_norm_double_backward)

Gradients layer_norm_rows(Backward& b) {
  Tensor input = b("input"), outer = b("grad_out"), weight = b("weight");
  const Sizes input_sizes = input.sizes();
  const int64_t columns = numel(b.ints("normalized_shape")), rows = input.numel() / columns;
  const Sizes matrix{rows, columns}, row{1, columns};
  auto reshaped = [](const Tensor& tensor, const Sizes& sizes) {
    return tensor.defined() ? reshape(tensor, sizes) : tensor;
  };
  input = reshaped(input, matrix);
  outer = reshaped(outer, matrix);
  const Tensor mean = reshaped(b("mean"), Sizes{rows, 1}), sigma = reshaped(b("rstd"), Sizes{rows, 1});
  const Sizes weight_sizes = weight.defined() ? weight.sizes() : Sizes();
  weight = reshaped(weight, row);
  const Tensor of_weight = reshaped(weight.defined() ? b.grad(1) : Tensor(), row),
               of_bias = reshaped(b.grad(2), row), of_input = reshaped(b.grad(0), matrix);
  const Normalized n = normalized(input, mean, sigma, Sizes{1}, false);
  Gradients gradients{Tensor(), Tensor(), Tensor()};  // input, weight, grad_out
  if (b.wants("input")) {
    const Tensor g = weight.defined() ? outer * weight : outer;
    const Tensor g_along = total(n, g * n.centred), g_total = total(n, g);
    if (of_input.defined()) gradients[0] = bent_input(n, g, of_input, g_along, g_total);
    if (of_weight.defined()) {
      const Tensor product = outer * of_weight;
      add_to(gradients[0], bent_by_weight(n, product, total(n, outer * of_weight),
                                          total(n, outer * of_weight * n.centred)));
    }
    if (gradients[0].defined()) gradients[0] = view(gradients[0], input_sizes);
  }
  if (weight.defined() && b.wants("weight") && of_input.defined())
    gradients[1] = view(sum(outer * first_backward(n, of_input, ones_of(input, Sizes{})), Sizes{0}, false),
                        weight_sizes);
  if (b.wants("grad_out")) {
    Tensor& result = gradients[2];
    if (of_input.defined())
      result = first_backward(n, of_input, weight.defined() ? weight : ones_of(input, Sizes{}));
    if (of_weight.defined()) add_to(result, of_weight * n.centred * n.sigma);
    if (of_bias.defined()) {
      if (result.defined()) {
        add_to(result, of_bias);
      } else {
        result = of_bias;
      }
    }
    if (result.defined()) result = reshape(expand(result, matrix), input_sizes);
  }
  return gradients;
}

constexpr Derivatives layer_norm_twice() {
  return {
      {{"input", "weight", "grad_out"}, {"input", "weight", "grad_out", "mean", "rstd"}, layer_norm_rows}};
}

constexpr Op kLayerNorm[] = {
    {.schema = "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
               "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     .summary = "(input − mean) / deviation · weight + bias, per row",
     .meta = composite(layer_norm_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3,4] (4) f32[4] f32[4]", "f32[2,3,4] (3 4)"},
     .facts = {.autocast = Autocast::fp32}},
    {.schema = "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
               "float eps) -> (Tensor, Tensor, Tensor)",
     .summary = "layer_norm: output, mean, inverse deviation",
     .meta = native_layer_norm_meta,
     .host_code = {{DeviceType::cuda, native_layer_norm_cuda}},
     .derivatives = {{{"input", "weight", "bias"},
                      {"bias", "input", "weight", "result1", "result2"},
                      layer_norm_gradients}},
     .flops = elementwise_flops<8>,
     .examples = {"f32[2,3,4] (4) f32[4] f32[4] 1e-5"},
     .facts = {.autocast = Autocast::fp32, .no_gradient_for = {"result1", "result2"}}},
    {.schema =
         "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
         "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .summary = "gradients of layer_norm",
     .meta = native_layer_norm_backward_meta,
     .host_code = {{DeviceType::cuda, native_layer_norm_backward_cuda}},
     .derivatives = layer_norm_twice(),
     .flops = [](const Call& c) -> FlopCount { return {.own = 14 * c.tensor("input").numel()}; },
     .examples = {"f32[2,3] f32[2,3] (3) f32[2,1] f32[2,1] f32[3] f32[3] (True True True)"}}};

}  // namespace

Tables layer_norm_operators() {
  static constexpr Records tables[] = {kLayerNorm};
  return tables;
}

}  // namespace metaprof
