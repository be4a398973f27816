#pragma once
// Descriptors of tensors of cuDNN's older API.

#include <vector>

namespace metaprof::emulator::cudnn {

enum DataType : int { float_type = 0, double_type = 1, half_type = 2, bfloat16_type = 9 };

struct Tensor {
  int type = float_type;
  std::vector<int> sizes = {}, strides = {};
};

}  // namespace metaprof::emulator::cudnn
