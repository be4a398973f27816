#pragma once
// Batch normalisation: what decides between cuDNN and the framework's own kernels, and what those do.

#include "meta/op/call.h"

namespace metaprof {

/// Which of the framework's own kernels take an input (Normalization.cu, batch_norm_choose_impl).
enum class BatchNormLayout : uint8_t { contiguous, channels_last, general };
BatchNormLayout batch_norm_layout(const Tensor& input);
/// One kernel makes all gradients.
bool batch_norm_backward_is_fused(const Tensor& grad, const Tensor& input, bool reduces, bool wants_input);

void native_batch_norm_cuda(Call& call);
void native_batch_norm_backward_cuda(Call& call);

}  // namespace metaprof
