#pragma once
// Convolutions: geometry, and which library computes one (aten/src/ATen/native/Convolution.cpp, 2.11).

#include "meta/session/call.h"

namespace metaprof {

enum class ConvolutionBackend : uint8_t {
  empty,         ///< no batch or no channels: nothing is computed
  cudnn,         ///< also transposed
  depthwise_2d,  ///< the framework's own kernels, row-major only
  depthwise_3d,
  slow,  ///< columns and a product per image: where cuDNN cannot, as with bf16 before compute capability 8.0
  slow_transposed,  ///< the same, transposed
  host
};

/// The plain arguments of one convolution.
struct ConvolutionArguments {
  Sizes stride, padding, dilation, output_padding;  ///< one per spatial dimension
  bool transposed = false;
  int64_t groups = 1;
};

/// A convolution with its tensors as the backends see them: 1-D ones as 2-D.
struct Convolution : ConvolutionArguments {
  Tensor input, weight;
};

/// Arguments of `convolution` and `convolution_backward`, lists of one number spread over the spatial
/// dimensions; wrong ones are an Error.
ConvolutionArguments convolution_arguments(const Call& call, int64_t spatial_dims);
/// Sizes of the output; an Error if the kernel does not fit.
Sizes convolution_output_sizes(const Call& call, const Convolution& convolution);

/// channels_last if the input or the weight looks like it, whatever backend (ConvUtils.h,
/// cudnn_conv_suggest_memory_format); f64 stays row-major.
MemoryFormat convolution_format(const Tensor& input, const Tensor& weight);
ConvolutionBackend convolution_backend(const Call& call, const Convolution& convolution);

/// [N,C,L] as [N,C,1,L], without history.
Tensor as_2d(const Tensor& tensor);

/// A result as the backends see it.
inline Tensor seen_as_2d(const Tensor& result) { return result.dim() == 3 ? as_2d(result) : result; }

/// Kernels of the backends `slow` and `slow_transposed` (convolution_slow_cuda.cpp).
void slow_forward(Call& call, const Convolution& convolution);
void slow_backward(Call& call, const Convolution& convolution, const Tensor& grad_output);
void slow_transposed_forward(Call& call, const Convolution& convolution);
void slow_transposed_backward(Call& call, const Convolution& convolution, const Tensor& grad_output);

/// Kernels of `convolution` and `convolution_backward` on CUDA (convolution_cuda.cpp).
void convolution_cuda(Call& call);
void convolution_backward_cuda(Call& call);

/// What convolution_backward makes, before any of it has memory.
struct ConvolutionGradients {
  ConvolutionBackend backend;
  MemoryFormat backend_format;  ///< into which the input is brought if the weight's gradient is wanted
  MemoryFormat input_format, weight_format;  ///< of the results
};
ConvolutionGradients plan_gradients(const Call& call, const Convolution& convolution,
                                    const Tensor& grad_output);

}  // namespace metaprof
