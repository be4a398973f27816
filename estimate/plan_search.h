#pragma once
// Looks in the plans of a strategy for the cheapest of which the step, run with it, stays within a budget.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimate/step_run.h"
#include "planner/module_tree.h"

namespace metaprof {

/// A plan that was run.
struct TriedPlan {
  RecomputePlan plan;
  std::vector<std::string> words;  ///< of --checkpoint
  StepFigures figures;
  double gap = 0;  ///< PlanSeries::gap
};

/// The words of --strategy.
std::vector<std::string> plan_strategies();

class PlanSearch {
 public:
  /// `plain`: figures of the step without recomputation. All outlive the search.
  PlanSearch(StepRunner& runner, const ModuleTree& tree, const StepFigures& plain, Bytes budget)
      : runner_(runner), tree_(tree), plain_(plain), budget_(budget) {}

  /// The cheapest plan of one of plan_strategies() that holds, or the one with the smallest peak. Errors: it
  /// needs a solver that is not there.
  TriedPlan find(const std::string& strategy);

 private:
  bool holds(const StepFigures& figures) const { return figures.allocated <= budget_; }
  void search_series(const std::string& strategy);
  void search_operators();
  void search(const PlanSeries& series);
  void leave_out();
  RecomputePlan first_of_class(const RecomputePlan& plan, int32_t of, size_t count) const;
  const StepFigures& run(RecomputePlan plan, double gap);

  StepRunner& runner_;
  const ModuleTree& tree_;
  const StepFigures& plain_;
  const Bytes budget_;
  StepRunner::Extent extent_ = StepRunner::Extent::two_steps;
  std::optional<TriedPlan> best_;
  TriedPlan smallest_;
  std::map<std::vector<std::string>, StepFigures> known_;  // by words
};

}  // namespace metaprof
