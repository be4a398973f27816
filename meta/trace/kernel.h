#pragma once
// What computes a call, as far as its speed depends on that.

#include <cstdint>
#include <optional>
#include <string_view>

namespace metaprof {

enum class Kernel : uint8_t {
  other,      ///< products by cuBLAS, everything else by kernels of the framework
  cudnn,      ///< products of f32 in TF32 unless that is switched off
  attention,  ///< attention in one kernel: its products and its softmax
  depthwise,  ///< the framework's own convolution of one channel at a time, which no matrix engine computes
};

std::string_view to_string(Kernel);

/// Inverse of to_string(Kernel).
std::optional<Kernel> kernel_named(std::string_view name);

}  // namespace metaprof
