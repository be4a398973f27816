#include "estimate/plan/plan_search.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "estimate/plan/plan_refinement.h"
#include "estimate/plan/strategies/chain_plans.h"
#include "estimate/plan/strategies/integer_program.h"
#include "estimate/plan/strategies/module_plans.h"
#include "estimate/plan/strategies/operator_plans.h"
#include "estimate/plan/strategies/plan_text.h"

namespace metaprof {
namespace {

using Extent = StepRunner::Extent;

// What is computed again as a whole is alive as a whole, so a smaller limit on one module may hold where a
// larger one does not.
std::set<int64_t, std::greater<>> sizes_of_modules(const ModuleTree& tree) {
  std::set<int64_t, std::greater<>> sizes;
  for (const ModuleClass& one : tree.classes)
    if (one.saved > 0) sizes.insert(one.saved);
  return sizes;
}

// Plans of a series that are run to find one that holds.
constexpr size_t kProbes = 16;

// Of the processor, for the solver, over all limits on one module: it proves most of its answers in a fiftieth of
// that.
constexpr double kSolverSeconds = 20;

// What others do is compared as it is.
bool is_baseline(std::string_view strategy) {
  return strategy == "rotor" || strategy == "square-root" || strategy == "knapsack";
}

Treatment treatment_of(std::string_view strategy) {
  return strategy == "offload" ? Treatment::on_host : Treatment::computed_again;
}

}  // namespace

std::vector<std::string> plan_strategies() {
  return {"modules", "chain", "operators", "offload", "rotor", "square-root", "knapsack"};
}

std::vector<std::string> usual_plan_strategies() {
  std::vector<std::string> usual = {"modules", "chain"};
  if (missing_solver().empty()) usual.emplace_back("operators");
  return usual;
}

const ModuleTree& PlanSearch::tree_of(const std::string& strategy) {
  const Treatment treatment = treatment_of(strategy);
  const auto found = trees_.find(treatment);
  if (found != trees_.end()) return found->second;
  return trees_.emplace(treatment, measured_modules(runner_, plain_, treatment)).first->second;
}

TriedPlan PlanSearch::find(const std::string& strategy, Bytes budget) {
  budget_ = budget;
  treatment_ = treatment_of(strategy);
  for (;;) {
    best_.reset();
    gap_.reset();
    smallest_ = {.plan = {}, .words = {}, .figures = plain_};
    if (holds(plain_)) return smallest_;
    tree_ = &tree_of(strategy);
    for (const auto& series : series_of(strategy)) search(*series);
    if (best_ && !is_baseline(strategy))
      refined(*tree_, best_->plan, [&](const RecomputePlan& plan) { return holds(run(plan)); });
    TriedPlan& found = best_ ? *best_ : smallest_;
    found.gap = gap_;
    if (extent_ == Extent::all || found.words.empty()) return found;
    found.figures = runner_.run(found.words, Extent::all);
    if (!best_ || holds(found.figures)) return found;
    extent_ = Extent::all;  // later steps take more than the second
    known_.clear();
  }
}

const PlanSearch::AllSeries& PlanSearch::series_of(const std::string& strategy) {
  const auto [found, is_new] = series_.try_emplace(strategy);
  AllSeries& all = found->second;
  if (!is_new) return all;
  const ModuleTree& tree = tree_of(strategy);
  if (strategy == "modules" || strategy == "offload")
    for (const int64_t largest : sizes_of_modules(tree))
      all.push_back(module_plans(tree, {.largest = largest}));
  if (strategy == "operators") {
    const auto seconds = std::make_shared<double>(kSolverSeconds);
    for (const int64_t largest : sizes_of_modules(tree))
      all.push_back(operator_plans(tree, {.largest = largest, .seconds = seconds}));
  }
  if (strategy == "rotor" || strategy == "chain") all.push_back(chain_plans(chain_of(tree)));
  if (strategy == "chain") all.push_back(equal_stretch_plans(chain_of(tree)));
  // Savings do not quite add up, so that the simpler problem may have the better answer.
  if (strategy == "square-root" || strategy == "chain") all.push_back(square_root_plans(chain_of(tree)));
  if (strategy == "knapsack" || strategy == "operators") all.push_back(knapsack_plans(tree));
  if (strategy == "operators") all.push_back(knapsack_plans(tree, 201, true));
  return all;
}

// A stretch may begin with a module that writes to its input, which then cannot be computed again: no plan at all.
StepFigures PlanSearch::figures_of(const std::vector<std::string>& words) {
  try {
    return runner_.run(words, extent_);
  } catch (const Error&) {
    StepFigures none = plain_;
    none.allocated = {INT64_MAX};
    return none;
  }
}

const StepFigures& PlanSearch::run(RecomputePlan plan) {
  for (PlannedRegion& region : plan) region.on_host = treatment_ == Treatment::on_host;
  TriedPlan tried{.plan = std::move(plan), .words = {}, .figures = {}};
  tried.words = plan_words(*tree_, tried.plan);
  const auto [known, is_new] = known_.try_emplace(tried.words);
  if (is_new) known->second = tried.words.empty() ? plain_ : figures_of(tried.words);
  tried.figures = known->second;
  if (tried.figures.allocated < smallest_.figures.allocated) smallest_ = tried;
  if (holds(tried.figures) && (!best_ || tried.figures.again < best_->figures.again)) best_ = tried;
  return known->second;
}

// The first plan of the series that holds: the budget of the strategy, bisected. Plans that cost more than one that holds are
// not run; nor are those that save less than half of what is wanted, unless they are the last. A solver makes each plan that is
// looked at, so a series whose first plan of any use is too dear ends there.
void PlanSearch::search(const PlanSeries& series) {
  size_t end = series.size();
  const int64_t wanted = (plain_.allocated - budget_).count;
  if (best_ && end > 1) {
    const auto is_cheaper = [&](size_t plan) { return series.figures(plan).cost < best_->figures.again; };
    size_t cheaper = series.first_that_saves(wanted / 2);
    if (!is_cheaper(cheaper)) return;
    while (end - cheaper > 1) {
      const size_t middle = cheaper + (end - cheaper) / 2;
      (is_cheaper(middle) ? cheaper : end) = middle;
    }
  }
  if (end <= 1) return;
  const auto try_plan = [&](size_t plan) {
    gap_ = std::max(gap_, series.gap(plan));
    return holds(run(series.plan(plan)));
  };
  // The last plan keeps least; that it has the smallest peak is only likely.
  size_t holding = end - 1, fails = 0;
  if (2 * series.figures(holding).saved < wanted) {
    try_plan(holding);
    return;
  }
  for (size_t part = kProbes; !try_plan(holding);) {
    if (--part == 0) return;
    holding = (end - 1) * part / kProbes;
    if (holding == 0) return;
  }
  while (holding - fails > 1) {
    const size_t middle = fails + (holding - fails) / 2;
    (try_plan(middle) ? holding : fails) = middle;
  }
}

}  // namespace metaprof
