#pragma once
// Derivatives of backward operators: what a second derivative goes through (derivatives.yaml and
// FunctionsManual.cpp, 2.11; the order of calls is that of PyTorch 2.11 under a dispatch mode).

#include "meta/autograd/backward.h"

namespace metaprof {

// Activations.
Derivatives gelu_twice();
Derivatives softplus_twice();
Derivatives hardswish_twice();
Derivatives elu_twice();
Derivatives glu_twice();
Derivatives rrelu_twice();
Derivatives log_sigmoid_twice();
Derivatives prelu_twice();

// Losses.
Derivatives mse_twice();
Derivatives smooth_l1_twice();
Derivatives huber_twice();
Derivatives soft_margin_twice();
Derivatives binary_cross_entropy_twice();

// Layers.
Derivatives convolution_twice();
Derivatives batch_norm_twice();
Derivatives any_batch_norm_twice();  ///< of batch_norm_backward, whichever library takes it
Derivatives layer_norm_twice();

}  // namespace metaprof
