#pragma once
// Models of torchvision 0.26, layer by layer: pixel_values f32[batch, 3, 224, 224] and labels in, cross-entropy out.

#include <string>
#include <string_view>
#include <vector>

#include "program/config/layers/config.h"
#include "program/program.h"

namespace metaprof::vision {

struct VisionModel {
  std::string_view name;
  Program (*program)(const std::string& name, const InputSizes& sizes);
};
/// resnet18 … resnet152
const std::vector<VisionModel>& resnets();
/// alexnet, vgg11 … vgg19 and those with norms
const std::vector<VisionModel>& plain_networks();

}  // namespace metaprof::vision
