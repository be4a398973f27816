#include "estimate/plan_search.h"

#include <algorithm>
#include <set>

#include "planner/chain_plans.h"
#include "planner/integer_program.h"
#include "planner/module_plans.h"
#include "planner/operator_plans.h"
#include "planner/plan_text.h"

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

// What others do is compared as it is.
bool is_baseline(std::string_view strategy) { return strategy == "square-root" || strategy == "knapsack"; }

Treatment treatment_of(std::string_view strategy) {
  return strategy == "offload" ? Treatment::on_host : Treatment::computed_again;
}

bool is_of_class(const ModuleTree& tree, const PlannedRegion& region, int32_t of) {
  return region.first == region.last && tree.modules[size_t(region.first)].of == of;
}

}  // namespace

std::vector<std::string> plan_strategies() {
  return {"modules", "chain", "operators", "offload", "square-root", "knapsack"};
}

std::vector<std::string> usual_plan_strategies() {
  std::vector<std::string> usual = {"modules", "chain"};
  if (can_solve_integer_programs()) usual.emplace_back("operators");
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
    smallest_ = {.plan = {}, .words = {}, .figures = plain_};
    if (holds(plain_)) return smallest_;
    tree_ = &tree_of(strategy);
    for (const auto& series : series_of(strategy)) search(*series);
    if (best_ && !is_baseline(strategy)) leave_out();
    TriedPlan& found = best_ ? *best_ : smallest_;
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
  if (strategy == "operators")
    for (const int64_t largest : sizes_of_modules(tree))
      all.push_back(operator_plans(tree, {.largest = largest}));
  if (strategy == "chain") {
    all.push_back(chain_plans(chain_of(tree)));
    all.push_back(equal_stretch_plans(chain_of(tree)));
  }
  // Savings do not quite add up, so that the simpler problem may have the better answer.
  if (strategy == "square-root" || strategy == "chain") all.push_back(square_root_plans(chain_of(tree)));
  if (strategy == "knapsack" || strategy == "operators") all.push_back(knapsack_plans(tree));
  if (strategy == "operators") all.push_back(knapsack_plans(tree, 201, true));
  return all;
}

const StepFigures& PlanSearch::run(RecomputePlan plan, double gap) {
  for (PlannedRegion& region : plan) region.on_host = treatment_ == Treatment::on_host;
  TriedPlan tried{.plan = std::move(plan), .words = {}, .figures = {}, .gap = gap};
  tried.words = plan_words(*tree_, tried.plan);
  const auto [known, is_new] = known_.try_emplace(tried.words);
  if (is_new) known->second = tried.words.empty() ? plain_ : runner_.run(tried.words, extent_);
  tried.figures = known->second;
  if (tried.figures.allocated < smallest_.figures.allocated) smallest_ = tried;
  if (holds(tried.figures) && (!best_ || tried.figures.again < best_->figures.again)) best_ = tried;
  return known->second;
}

// The first plan of the series that holds: the budget of the strategy, bisected. Plans that cost more than one
// that holds are not run.
void PlanSearch::search(const PlanSeries& series) {
  size_t end = series.size();
  if (best_) {
    const auto is_cheaper = [&](size_t plan) { return series.figures(plan).cost < best_->figures.again; };
    size_t cheaper = 0;  // plan 0 costs nothing
    while (end - cheaper > 1) {
      const size_t middle = cheaper + (end - cheaper) / 2;
      (is_cheaper(middle) ? cheaper : end) = middle;
    }
  }
  if (end <= 1) return;
  const auto try_plan = [&](size_t plan) { return holds(run(series.plan(plan), series.gap(plan))); };
  // The last plan keeps least; that it has the smallest peak is only likely.
  size_t holding = end - 1, fails = 0;
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

// Costs that add up are not all: of each class the modules with the latest forward are kept again, as many as
// the budget allows. The dearest first.
void PlanSearch::leave_out() {
  std::set<int32_t> chosen;
  for (const PlannedRegion& region : best_->plan)
    if (region.first == region.last) chosen.insert(tree_->modules[size_t(region.first)].of);
  std::vector<int32_t> classes(chosen.begin(), chosen.end());
  std::ranges::stable_sort(classes, [&](int32_t a, int32_t b) {
    return tree_->classes[size_t(b)].cost < tree_->classes[size_t(a)].cost;
  });
  for (const int32_t of : classes) {
    const RecomputePlan before = best_->plan;
    const double gap = best_->gap;
    size_t least = 0, most = 0;  // how many stay; `most` holds
    for (const PlannedRegion& region : before) most += is_of_class(*tree_, region, of);
    while (least < most) {
      const size_t middle = least + (most - least) / 2;
      if (holds(run(first_of_class(before, of, middle), gap)))
        most = middle;
      else
        least = middle + 1;
    }
  }
}

// The plan without regions of a class beyond the first `count`.
RecomputePlan PlanSearch::first_of_class(const RecomputePlan& plan, int32_t of, size_t count) const {
  RecomputePlan fewer;
  for (const PlannedRegion& region : plan)
    if (!is_of_class(*tree_, region, of) || count-- > 0) fewer.push_back(region);
  return fewer;
}

}  // namespace metaprof
