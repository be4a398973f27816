#pragma once
// A model as planners of activation checkpointing want it.

#include <string>
#include <string_view>
#include <vector>

#include "profiler/nodes/plan_input.h"

namespace metaprof {

struct PlanReport {
  std::string model, device;
  std::string root_type;  ///< of the model, "ResNet"
  PlanInput input;
};

}  // namespace metaprof
