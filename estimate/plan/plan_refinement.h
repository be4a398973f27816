#pragma once
// Uses what a plan leaves of the budget. Strategies add up costs; whether a change holds, a run of the step says.

#include <functional>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// Whether the step, run with the plan, stays within the budget.
using PlanHolds = std::function<bool(const RecomputePlan&)>;

/// A plan that computes less again than one that holds, and holds: modules with the latest forward are kept of each
/// kind, the dearest first; then the last ones of stretches; then more results within modules, those first whose
/// FLOPs per byte are the most. How many at once is found by halves.
RecomputePlan refined(const ModuleTree& tree, RecomputePlan plan, const PlanHolds& holds);

}  // namespace metaprof
