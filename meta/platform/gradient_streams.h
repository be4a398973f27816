#pragma once

#include "meta/platform/framework.h"

namespace metaprof {

/// Where gradients of several streams meet, they do on a stream that the first of them decides, which waits for each that
/// comes; else for every gradient there is one of five cases (torch/csrc/autograd/input_buffer.cpp; its header changed
/// in 2.8).
bool first_gradient_decides_stream(const Framework& framework);

}  // namespace metaprof
