#pragma once
// What of a step to compute again in backward, so that it fits in a budget: docs/how_to/planning.md.

#include "estimate/prepare/model.h"
#include "estimate/results/search/checkpoint_plan.h"

namespace metaprof {

struct PlanOptions {
  RunOptions run;  ///< of the step; its `checkpoint` is empty
  std::string
      budget;  ///< "24GiB", or a share of the peak without recomputation: "60%"; empty: with `curve` alone
  std::vector<std::string> strategies;  ///< "modules", "chain" …, or "all"; empty: the usual ones
  std::vector<std::string> files;  ///< with others' plans, to be run beside them: estimate/plan/plan_files.h
  bool curve = false;              ///< what each budget costs, down to the smallest that a plan reaches
  bool costs = false;              ///< what the strategies are told
};

/// For each strategy the cheapest plan of which the step, run with it, stays within the budget; where there is
/// none the one that comes closest. Errors: a trace, a mode without backward, a --checkpoint of the user's own,
/// no budget, no such strategy, a file that is no plan of this model; as run_steps.
CheckpointReport plan(const Model& model, const PlanOptions& options);

}  // namespace metaprof
