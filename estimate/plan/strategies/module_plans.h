#pragma once
// The strategy "modules": which modules to wrap in torch.utils.checkpoint.

#include <memory>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

struct ModulePlanLimits {
  /// A module that saves more than this is never computed again as a whole: its parts are, one after the other.
  int64_t largest = INT64_MAX;
  /// Plans to keep of each class; further ones are thinned out evenly by what they save.
  size_t plans = 256;
};

/// The plans of which none both saves more and costs less. Costs and savings add up; no chosen module lies in
/// another. Of modules that are alike those with the earlier forward are computed again first: they are alive
/// longest. The work grows with the number of classes, and with the logarithm of how many there are of each.
std::unique_ptr<PlanSeries> module_plans(const ModuleTree& tree, const ModulePlanLimits& limits = {});

/// Each of these modules by itself, computed again.
RecomputePlan whole_modules(const std::vector<int32_t>& modules);

}  // namespace metaprof
