// NNPACK's convolution on the host (aten/src/ATen/native/NNPACK.cpp, PyTorch 2.11). `convolution` goes to it only where
// oneDNN is switched off (Convolution.cpp, use_mkldnn and use_nnpack: batches of 16 and more, which oneDNN takes first);
// its workspace is no tensor but memory of the C library.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/convolution/convolution.h"
#include "meta/ops/convolution/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

void nnpack_meta(Call& c) {
  const Tensor &input = c.tensor("input"), &weight = c.tensor("weight"), &bias = c.tensor("bias");
  if (input.size(1) != weight.size(1))
    c.error(fmt::format("the input has {} channels, the weight wants {}", input.size(1), weight.size(1)));
  for (const Tensor* tensor : {&input, &weight, &bias})
    if (tensor->defined() && tensor->dtype() != DType::f32)
      c.error(fmt::format("computes in float32 alone; got {}", describe(*tensor)));
  if (c.ints("stride").size() != 2 || c.ints("padding").size() != 2)
    c.error("expects two numbers of stride and padding");
  Convolution v;
  v.input = input;
  v.weight = weight;
  v.stride = c.ints("stride");
  v.padding = c.ints("padding");
  v.dilation = v.output_padding = Sizes{1, 1};
  c.output(convolution_output_sizes(c, v), input.dtype());
}

FlopCount nnpack_flops(const Call& c) {
  const Sizes& weight = c.tensor("weight").sizes();
  return {.own =
              multiply(2 * c.result_tensor().numel(), multiply(weight[1], multiply(weight[2], weight[3])))};
}

Gradients nnpack_gradients(Backward& b) {
  const TensorImpl* bias = b.shape("bias");
  const Value::Booleans wants{b.wants("input"), b.wants("weight"), b.wants("bias")};
  Results gradients = call_all<"convolution_backward">(
      b.session, b.grad(), b("input"), b("weight"), bias ? Value(bias->sizes) : Value(), b["stride"],
      b["padding"], Sizes{1, 1}, false, Sizes{0, 0}, 1, wants);
  return {gradients[0], gradients[1], gradients[2]};
}

constexpr Op kNnpack[] = {
    {.schema = "_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, "
               "SymInt[2] stride=1) -> Tensor",
     .summary = "weight ⋆ input + bias, on the host",
     .meta = nnpack_meta,
     .derivatives = {{{"input", "weight", "bias"}, {"input", "weight"}, nnpack_gradients}},
     .flops = nnpack_flops,
     .examples = {"f32[2,3,6,6] f32[4,3,3,3] f32[4] (1 1)", "f32[2,3,6,6] f32[4,3,3,3] None (0 1) (2 1)"},
     .facts = {.takes = "input.dim == 4, weight.dim == 4, stride.each > 0, padding.each >= 0",
               .product = true}}};

}  // namespace

Tables nnpack_operators() {
  static constexpr Records tables[] = {kNnpack};
  return tables;
}

}  // namespace metaprof
