// What convolutions do on CUDA besides allocating their results (aten/src/ATen/native/Convolution.cpp,
// cudnn/ConvShared.cpp, cuda/DepthwiseConv2d.cu, 2.11): copies into the chosen format, scratch memory, order.

#include "meta/ops/convolution/convolution.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/planned_workspaces.h"

namespace metaprof {
namespace {

// The arguments as the backends see them. The 1-D path makes its input row-major first and keeps that copy
// until it returns.
Convolution prepared(Call& c) {
  Convolution v;
  v.input = c.tensor("input");
  v.weight = c.tensor("weight");
  static_cast<ConvolutionArguments&>(v) = convolution_arguments(c, v.weight.dim() - 2);
  if (v.weight.dim() != 3) return v;
  v.input = as_2d(c.contiguous(v.input));
  v.weight = as_2d(v.weight);
  for (auto [list, value] :
       {std::pair{&v.stride, 1}, {&v.padding, 0}, {&v.dilation, 1}, {&v.output_padding, 0}})
    *list = Sizes{value, (*list)[0]};
  return v;
}

// Scratch memory that cuDNN plans for one convolution: x, w and y are input, weight and output of the
// untransposed one.
Ref<Storage> convolution_workspace(Call& c, PlannedOp op, const Convolution& v, const Tensor& x,
                                   const Tensor& w, const Tensor& y) {
  if (!c.session.planned_workspaces) return {};
  const ConvolutionPlan plan{.op = op,
                             .x = x.sizes(),
                             .w = w.sizes(),
                             .stride = v.stride,
                             .padding = v.padding,
                             .dilation = v.dilation,
                             .x_strides = x.strides(),
                             .w_strides = w.strides(),
                             .y_strides = y.strides(),
                             .dtype = x.dtype()};
  const int64_t bytes = c.session.planned_workspaces->convolution(plan, c.platform());
  return bytes > 0 ? c.temporary_bytes(bytes, Category::workspace) : Ref<Storage>();
}

void cudnn_forward(Call& c, const Convolution& v) {
  const MemoryFormat format = convolution_format(v.input, v.weight);
  const Tensor input = c.contiguous(v.input, format);
  c.allocate(0);
  if (c.result_tensor().numel() == 0) return;
  const Tensor weight = c.contiguous(v.weight, format);
  const Tensor output = seen_as_2d(c.result_tensor());
  if (v.transposed) {
    convolution_workspace(c, PlannedOp::conv_dgrad, v, output, weight, input);
  } else {
    convolution_workspace(c, PlannedOp::conv_fwd, v, input, weight, output);
  }
}

// cuDNN, which the record names, does not compute this call.
void is_depthwise_kernel(Call& c) { c.session.trace.calls[c.index].kernel = Kernel::depthwise; }

void depthwise_2d_forward(Call& c, const Convolution& v) {
  is_depthwise_kernel(c);
  const Tensor input = c.contiguous(v.input), weight = c.contiguous(v.weight);
  c.allocate(0);
}

void depthwise_3d_forward(Call& c, const Convolution& v) {
  is_depthwise_kernel(c);
  const Tensor input = c.contiguous(v.input);
  c.allocate(0);
  const Tensor weight = c.contiguous(v.weight);
}

// Tensor::to(memory_format): a copy unless the tensor already looks like that format, even if it has gaps.
Tensor brought_to(Call& c, const Tensor& tensor, MemoryFormat format) {
  if (suggested_format(tensor) == format) return tensor;
  return call<"clone">(c.session, tensor, format);
}

void cudnn_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  const auto& wants = c["output_mask"].booleans();
  const ConvolutionGradients plan = plan_gradients(c, v, incoming);
  const Tensor input = wants[1] ? c.contiguous(v.input, plan.backend_format) : v.input;
  const Tensor grad = v.transposed ? c.contiguous(incoming, suggested_format(input))
                                   : brought_to(c, incoming, suggested_format(input));
  if (wants[0]) {
    c.allocate(0);
    const Tensor weight = c.contiguous(v.weight, plan.input_format);
    const Tensor copy = c.contiguous(grad, plan.input_format);
    const Tensor result = seen_as_2d(c.result_tensor(0));
    if (v.transposed) {
      convolution_workspace(c, PlannedOp::conv_fwd, v, copy, weight, result);
    } else {
      convolution_workspace(c, PlannedOp::conv_dgrad, v, result, weight, copy);
    }
  }
  if (wants[1]) {
    const Tensor& y = v.transposed ? input : grad;
    const Tensor& x = v.transposed ? grad : input;
    const Tensor y_copy = c.contiguous(y, plan.weight_format), x_copy = c.contiguous(x, plan.weight_format);
    c.allocate(1);
    convolution_workspace(c, PlannedOp::conv_wgrad, v, x_copy, seen_as_2d(c.result_tensor(1)), y_copy);
  }
}

void depthwise_2d_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  is_depthwise_kernel(c);
  const auto& wants = c["output_mask"].booleans();
  const Tensor grad = c.contiguous(incoming);
  if (wants[1]) {
    const Tensor input = c.contiguous(v.input);
    c.allocate(1);
  }
  if (wants[0]) {
    const Tensor weight = c.contiguous(v.weight);
    c.allocate(0);
  }
}

void bias_gradient(Call& c, const Tensor& incoming) {
  if (!c["output_mask"].booleans()[2]) return;
  Sizes all_but_channels{0};
  for (int64_t d = 2; d < incoming.dim(); ++d) all_but_channels.push_back(d);
  c.results[2] = Value(sum(incoming, all_but_channels, false));
}

// cuda/DepthwiseConv3d.cu: the bias's gradient is made there too, while the copy of the incoming one lives.
void depthwise_3d_backward(Call& c, const Convolution& v, const Tensor& incoming) {
  is_depthwise_kernel(c);
  const auto& wants = c["output_mask"].booleans();
  if (wants[0]) c.allocate(0);
  if (wants[1]) c.allocate(1);
  const Tensor grad = c.contiguous(incoming);
  if (wants[0]) c.contiguous(v.weight);
  if (wants[1]) c.contiguous(v.input);
  bias_gradient(c, incoming);
}

}  // namespace

void convolution_cuda(Call& c) {
  const Convolution v = prepared(c);
  switch (convolution_backend(c, v)) {
    case ConvolutionBackend::cudnn: return cudnn_forward(c, v);
    case ConvolutionBackend::depthwise_2d: return depthwise_2d_forward(c, v);
    case ConvolutionBackend::depthwise_3d: return depthwise_3d_forward(c, v);
    case ConvolutionBackend::slow: return slow_forward(c, v);
    case ConvolutionBackend::slow_transposed: return slow_transposed_forward(c, v);
    default: return c.allocate_all();
  }
}

void convolution_backward_cuda(Call& c) {
  Tensor grad = c.tensor("grad_output");
  const Convolution v = prepared(c);
  if (grad.dim() == 3) grad = as_2d(grad);
  const ConvolutionBackend backend = convolution_backend(c, v);
  switch (backend) {
    case ConvolutionBackend::cudnn: cudnn_backward(c, v, grad); break;
    case ConvolutionBackend::depthwise_2d: depthwise_2d_backward(c, v, grad); break;
    case ConvolutionBackend::depthwise_3d: return depthwise_3d_backward(c, v, grad);
    case ConvolutionBackend::slow: return slow_backward(c, v, grad);
    case ConvolutionBackend::slow_transposed: return slow_transposed_backward(c, v, grad);
    default: return c.allocate_all();
  }
  bias_gradient(c, grad);
}

}  // namespace metaprof
