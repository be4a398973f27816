#pragma once
// The strategy "operators": which modules to compute again, and which results of operators to keep in them
// (torch.utils.checkpoint, create_selective_checkpoint_contexts).

#include <memory>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

struct OperatorPlanLimits {
  /// A module that saves more than this is never computed again as a whole.
  int64_t largest = INT64_MAX;
  size_t plans = 512;  ///< in the series, by rising savings
  /// Of the processor, left for the solver in all series that share it: each plan may take half of it, and a tenth of
  /// a second at least.
  std::shared_ptr<double> seconds = std::make_shared<double>(10);
};

/// As an integer programme over kinds of modules: of each kind how many are computed again, how many are opened,
/// so that the choice is among the modules inside them, and in how many of those computed again each result is
/// kept. Calls whose results take and cost as much are counted together, so a module around blocks that repeat is
/// no larger than one of them. So its size follows from the kinds, however many modules there are of each. The
/// cheapest that saves so much, for savings in equal steps; each is solved when it is asked for. Costs and savings
/// add up. Of modules and calls that are alike, the later ones keep their results.
/// Errors of its functions: there is no solver (estimate/plan/strategies/integer_program.h).
std::unique_ptr<PlanSeries> operator_plans(const ModuleTree& tree, const OperatorPlanLimits& limits = {});

/// The baseline, as the framework's own planner (torch/_functorch/_activation_checkpointing/knapsack.py,
/// dp_knapsack): all modules of the lists are computed again, and results stay that take the most work to make,
/// as long as their bytes stay within a limit; sizes in 10,000ths of all. A plan for each of `plans` limits.
/// `by_flops`: results that take none never stay, as the framework has it; else time decides where FLOPs do not.
std::unique_ptr<PlanSeries> knapsack_plans(const ModuleTree& tree, size_t plans = 201, bool by_flops = false);

}  // namespace metaprof
