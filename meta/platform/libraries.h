#pragma once
// The closed libraries that a process has loaded, and what its environment asks of them.

#include <optional>

#include "core/units.h"

namespace metaprof {

struct FrameworkVersion;

struct Libraries {
  int cuda = 13000;             ///< 13.0; as cudaRuntimeGetVersion says it
  int cudnn = 91900;            ///< 9.19.0; as cudnnGetVersion says it
  bool of_the_machine = false;  ///< these versions are installed there; else they come with the framework
  /// What the environment says; nothing where it says nothing.
  std::optional<Bytes> cublas_workspace = {}, cublas_lt_workspace = {};

  friend bool operator==(const Libraries&, const Libraries&) = default;

  // What the framework expects of cuDNN's attention (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).

  /// Heads of up to 256 on compute capability 9.0 (check_cudnn_tensor_shapes).
  bool attention_of_cudnn_is_wide() const { return cudnn >= 91000; }
  /// Versions between are wrong (check_cudnn_hardware_support).
  bool attention_of_cudnn_has_dropout() const { return cudnn <= 91100 || cudnn >= 91400; }
  /// It is taken before the framework's own (check_prefer_cudnn_attention).
  bool attention_of_cudnn_is_preferred() const { return cudnn > 91500; }
};

/// CUDA and cuDNN of the default wheel of this version.
Libraries libraries_shipped_with(FrameworkVersion version);

}  // namespace metaprof
