#pragma once
// Batch normalisation: what decides between cuDNN and the framework's own kernels, and what those do.

#include "meta/autograd/engine/backward.h"

namespace metaprof {

/// Which of the framework's own kernels take an input (Normalization.cu, batch_norm_choose_impl).
enum class BatchNormLayout : uint8_t { contiguous, channels_last, general };
BatchNormLayout batch_norm_layout(const Tensor& input);
/// One kernel makes all gradients.
bool batch_norm_backward_is_fused(const Tensor& grad, const Tensor& input, bool reduces, bool wants_input);

/// The decision between cuDNN and the framework's own kernels, and what a call of either gives: arguments
/// "input", "weight", "bias", "running_mean", "running_var" as far as the operator has them.
bool batch_norm_uses_cudnn(const Call& call, bool training, double epsilon);
void cudnn_batch_norm_results(Call& call, bool training);
void native_batch_norm_results(Call& call, bool training);

/// Memory for the first three results and the statistics' scratch memory.
void native_batch_norm_memory(Call& call, bool training);
/// Memory for the gradients of "input", "weight" and "bias" from "grad_out".
void native_batch_norm_backward_memory(Call& call, bool training);
/// The geometry of those gradients.
void native_batch_norm_backward_results(Call& call, bool training);

/// Of which of "input", "weight" and "bias" somebody wants the gradient, as the backward operators ask for it.
Value::Booleans wanted(const Backward& b);

/// What the arguments of a backward of batch norm are called.
struct BatchNormNames {
  Name sigma;  ///< the inverse deviation
  Name train = "train";
  bool always_trains = false;  ///< batches are normalised by their own statistics: there is no `train`
  Name gradient = "grad_out";
  Name eps = "eps";
};

/// The second derivative.
Gradients batch_norm_rows(Backward& b, const BatchNormNames& names);

}  // namespace metaprof
