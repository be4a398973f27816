#pragma once
// What versions of the framework do differently while they capture CUDA graphs.

#include "meta/platform/framework.h"

namespace metaprof {

/// Each graph has its own, which the first operator in it that draws random numbers makes on the default stream;
/// else all share those that the first capture makes on its stream (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp; seen
/// in recordings of 2.15 and 2.11; what lies between was not recorded and is taken to be as 2.11).
constexpr bool makes_graph_seed_on_first_use(const Framework& framework) {
  return framework.version >= FrameworkVersion{.major = 2, .minor = 15, .patch = 0};
}

/// make_graphed_callables captures on the stream of its steps to warm up, else on the one that all captures share
/// (torch/cuda/graphs.py; from 2.15 on, as far as is known).
constexpr bool captures_callables_on_warm_stream(const Framework& framework) {
  return framework.version >= FrameworkVersion{.major = 2, .minor = 15, .patch = 0};
}

/// The compiler goes on behind the call of a recurrent network, within the function that makes it; else that function
/// is left to Python as a whole (torch/_dynamo/variables/builder.py; seen in recordings of 2.15 and 2.11; what lies
/// between is taken to be as 2.11).
constexpr bool compiles_around_recurrent_networks(const Framework& framework) {
  return framework.version >= FrameworkVersion{.major = 2, .minor = 15, .patch = 0};
}

}  // namespace metaprof
