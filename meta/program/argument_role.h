#pragma once
// Arguments whose value in an export was decided by how the model was exported: what they are decides what
// they become when it is run in another way.

#include <string_view>

namespace metaprof {

enum class ArgumentRole : uint8_t {
  none,
  training_flag,        ///< the operator behaves as in training
  dropout_probability,  ///< zero outside training
  cudnn_flag,           ///< cuDNN may be used; exporters switch it off while they trace
  length,               ///< a number of elements to make
  sizes,                ///< of the result
  repeats,              ///< per dimension
};

/// By the name that the framework's schemas use.
ArgumentRole argument_role(std::string_view name);

}  // namespace metaprof
