#pragma once
// Looks in the plans of a strategy for the cheapest of which the step, run with it, stays within a budget.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimate/plan/plan_costs.h"
#include "estimate/plan/step_run.h"
#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// A plan that was run.
struct TriedPlan {
  RecomputePlan plan;
  std::vector<std::string> words;  ///< of --checkpoint
  StepFigures figures;
  std::optional<double> gap = {};  ///< the largest PlanSeries::gap of those that were tried to find it
};

/// Those that are tried where nobody asks for others: no baselines, and what this build can solve.
std::vector<std::string> usual_plan_strategies();

/// The words of --strategy.
std::vector<std::string> plan_strategies();

/// Costs are measured when a strategy first needs them, and what was run for one budget is known for the next.
class PlanSearch {
 public:
  /// `plain`: figures of the step without recomputation. Both outlive the search.
  PlanSearch(StepRunner& runner, const StepFigures& plain) : runner_(runner), plain_(plain) {}

  /// The cheapest plan of one of plan_strategies() that stays within the budget, or the one with the smallest
  /// peak. Errors: it needs a solver that is not there.
  TriedPlan find(const std::string& strategy, Bytes budget);

  /// The modules, with the costs that the strategy goes by.
  const ModuleTree& tree_of(const std::string& strategy);

 private:
  using AllSeries = std::vector<std::unique_ptr<PlanSeries>>;

  bool holds(const StepFigures& figures) const { return figures.allocated <= budget_; }
  const AllSeries& series_of(const std::string& strategy);
  void search(const PlanSeries& series);
  StepFigures figures_of(const std::vector<std::string>& words);
  const StepFigures& run(RecomputePlan plan);

  StepRunner& runner_;
  const StepFigures& plain_;
  std::map<Treatment, ModuleTree> trees_;
  std::map<std::string, AllSeries> series_;  // by strategy
  StepRunner::Extent extent_ = StepRunner::Extent::two_steps;
  std::map<std::vector<std::string>, StepFigures> known_;  // by words
  // Of the search that goes on:
  Bytes budget_;
  Treatment treatment_ = Treatment::computed_again;
  const ModuleTree* tree_ = nullptr;
  std::optional<TriedPlan> best_;
  TriedPlan smallest_;
  std::optional<double> gap_;
};

}  // namespace metaprof
