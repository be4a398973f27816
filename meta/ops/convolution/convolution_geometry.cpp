// Sizes, formats and backends of convolutions (aten/src/ATen/native/Convolution.cpp, ConvUtils.h, 2.11).

#include <fmt/format.h>

#include <algorithm>

#include "meta/ops/convolution/convolution.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

Sizes spread(const Call& c, Name name, int64_t dims) {
  const Sizes& given = c.ints(name);
  if (given.size() == 1) return Sizes(size_t(dims), given[0]);
  if (given.size() != size_t(dims))
    c.error(
        fmt::format("'{}' takes 1 or {} numbers here, got {}", name.text, dims, to_string(SizesView(given))));
  return given;
}

// What the tensor's contiguous copy in a format would be, without memory; itself if no copy is needed.
Tensor geometry_in(const Tensor& tensor, MemoryFormat format) {
  const bool is = format == MemoryFormat::contiguous ? tensor->contiguous
                                                     : is_channels_last(tensor.sizes(), tensor.strides());
  if (is) return tensor;
  return Tensor(
      new TensorImpl(tensor.sizes(), strides_in(format, tensor.sizes()), tensor.dtype(), tensor.device()));
}

bool any_at_least(const Sizes& a, const Sizes& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] >= b[i]) return true;
  return false;
}

bool is_dilated(const Convolution& v) {
  return std::any_of(v.dilation.begin(), v.dilation.end(), [](int64_t d) { return d != 1; });
}

bool is_depthwise(const Convolution& v) {
  return !v.transposed && v.groups > 1 && v.input.size(1) == v.groups &&
         v.weight.size(0) % v.input.size(1) == 0;
}

// cuDNN's depthwise kernels are preferred where they were measured to be fast
// (check_cudnn_depthwise_workload_with_filter).
bool cudnn_depthwise_is_fast(const Convolution& v) {
  const int64_t width = v.input.size(3), channels = v.input.size(1), filter = v.weight.size(3);
  const int64_t stride = v.stride[1];
  if (v.input.size(2) == 1 && stride == 1) return true;
  if (v.weight.size(2) != filter || (filter != 1 && filter != 3 && filter != 5) || width < 7) return false;
  if (stride == 1) return true;
  if (stride != 2) return false;
  if (v.input.size(0) == 1) return filter != 1 || width <= 28;
  if (filter == 1) return v.input.size(0) <= 16 && channels >= 128 && width <= 7;
  return channels >= 512 || (channels >= 256 && width >= 28);
}

bool depthwise_uses_cudnn(const Convolution& v) {
  auto fits_32_bits = [](const Tensor& t) { return span_of(t.sizes(), t.strides()) <= INT32_MAX; };
  if (!fits_32_bits(v.input) || !fits_32_bits(v.weight)) return true;
  if (convolution_format(v.input, v.weight) != MemoryFormat::contiguous) return true;
  return v.input.dtype() == DType::f16 && v.weight.dtype() == DType::f16 && v.input.dim() == 4 &&
         !is_dilated(v) && (v.stride[0] == v.stride[1] || v.input.size(2) == 1) && v.input.size(1) >= 32 &&
         cudnn_depthwise_is_fast(v);
}

}  // namespace

ConvolutionArguments convolution_arguments(const Call& c, int64_t dims) {
  ConvolutionArguments a;
  a.stride = spread(c, "stride", dims);
  a.padding = spread(c, "padding", dims);
  a.dilation = spread(c, "dilation", dims);
  a.output_padding = spread(c, "output_padding", dims);
  a.transposed = c.boolean("transposed");
  a.groups = c.integer("groups");
  if (a.groups < 1) c.error(fmt::format("groups must be positive, got {}", a.groups));
  for (size_t d = 0; d < size_t(dims); ++d)
    if (a.stride[d] < 1 || a.dilation[d] < 1 || a.padding[d] < 0 || a.output_padding[d] < 0)
      c.error("stride and dilation must be positive, paddings not negative");
  return a;
}

Sizes convolution_output_sizes(const Call& c, const Convolution& v) {
  const Sizes &x = v.input.sizes(), &w = v.weight.sizes();
  Sizes out{x[0], v.transposed ? multiply(w[1], v.groups) : w[0]};
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    const int64_t reach = multiply(v.dilation[d], w[d + 2] - 1) + 1;  // what the kernel spans
    const int64_t pads = multiply(2, v.padding[d]);
    if (v.transposed) {
      out.push_back(multiply(x[d + 2] - 1, v.stride[d]) - pads + reach + v.output_padding[d]);
    } else {
      if (x[d + 2] + pads < reach)
        c.error(
            fmt::format("the kernel spans {} but the padded input has only {} in dimension {}; got {} and {}",
                        reach, x[d + 2] + pads, d + 2, describe(v.input), describe(v.weight)));
      out.push_back((x[d + 2] + pads - reach) / v.stride[d] + 1);
    }
    if (out.back() < 0) c.error(fmt::format("the output would have size {}", out.back()));
  }
  if (x[1] == 0) out[1] = 0;
  return out;
}

MemoryFormat convolution_format(const Tensor& input, const Tensor& weight) {
  if (input.dtype() == DType::f64 || weight.dtype() == DType::f64) return MemoryFormat::contiguous;
  const MemoryFormat format = suggested_format(input);
  return format == MemoryFormat::contiguous ? suggested_format(weight) : format;
}

// CUDAHooks::supportsBFloat16ConvolutionWithCuDNNv8
bool has_bf16(const Call& c) {
  constexpr int kFirstCapability = 80;
  return c.session.ask([](const Platform& platform) { return platform.hardware.sm >= kFirstCapability; });
}

ConvolutionBackend convolution_backend(const Call& c, const Convolution& v) {
  if (v.input.size(0) == 0 || v.input.size(1) == 0) return ConvolutionBackend::empty;
  if (v.input.numel() == 0)
    c.error(fmt::format("only the batch or the channels may be empty, got {}", describe(v.input)));
  if (!v.input.is_cuda()) return ConvolutionBackend::host;
  if (is_depthwise(v) && !depthwise_uses_cudnn(v))
    return v.input.dim() == 5 ? ConvolutionBackend::depthwise_3d : ConvolutionBackend::depthwise_2d;
  // cuDNN has no output padding as large as a stride.
  if (any_at_least(v.output_padding, v.stride)) return ConvolutionBackend::slow_transposed;
  if (v.input.dtype() == DType::bf16 && !has_bf16(c))
    return v.transposed ? ConvolutionBackend::slow_transposed : ConvolutionBackend::slow;
  return ConvolutionBackend::cudnn;
}

Tensor as_2d(const Tensor& t) {
  const Sizes &sizes = t.sizes(), &strides = t.strides();
  return alias(t, Sizes{sizes[0], sizes[1], 1, sizes[2]},
               Sizes{strides[0], strides[1], sizes[2] * strides[2], strides[2]}, t->offset);
}

ConvolutionGradients plan_gradients(const Call& c, const Convolution& v, const Tensor& grad_output) {
  ConvolutionGradients plan{convolution_backend(c, v), MemoryFormat::contiguous, MemoryFormat::contiguous,
                            MemoryFormat::contiguous};
  const bool by_format =
      plan.backend == ConvolutionBackend::cudnn || plan.backend == ConvolutionBackend::host;
  if (!by_format) return plan;
  plan.backend_format = convolution_format(v.input, v.weight);
  const bool wants_weight = c["output_mask"].booleans()[1];
  const Tensor input = wants_weight ? geometry_in(v.input, plan.backend_format) : v.input;
  const Tensor grad = geometry_in(grad_output, suggested_format(input));
  plan.input_format = convolution_format(grad, v.weight);
  plan.weight_format = convolution_format(input, grad);
  return plan;
}

}  // namespace metaprof
