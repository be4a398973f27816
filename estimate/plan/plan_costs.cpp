#include "estimate/plan/plan_costs.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "estimate/parallel.h"
#include "estimate/plan/module_classes.h"
#include "estimate/plan/module_lists.h"
#include "estimate/plan/recomputed_calls.h"
#include "estimate/plan/strategies/module_plans.h"
#include "estimate/plan/strategies/plan_text.h"
#include "meta/ops/all.h"

namespace metaprof {
namespace {

// Less than this share of what the forward keeps is not worth a checkpoint of its own.
constexpr double kLeastShare = 1e-3;

constexpr auto kExtent = StepRunner::Extent::first_backward;

class CostMeasurement {
 public:
  CostMeasurement(StepRunner& runner, const StepFigures& plain, Treatment treatment)
      : runner_(runner), plain_(plain), treatment_(treatment), tree_(module_classes(runner.program())) {
    if (treatment == Treatment::computed_again) find_module_lists(runner.program(), tree_);
  }

  ModuleTree measure() {
    in_parallel(tree_.classes.size(), [&](size_t of) { measure_class(static_cast<int32_t>(of)); });
    std::map<int32_t, std::vector<int32_t>> lists;
    for (size_t i = 0; i < tree_.modules.size(); ++i)
      if (tree_.modules[i].list >= 0) lists[tree_.modules[i].list].push_back(static_cast<int32_t>(i));
    for (const auto& [list, modules] : lists) measure_list(modules);
    return std::move(tree_);
  }

 private:
  // All modules of the class are treated so.
  void measure_class(int32_t of) {
    const std::vector<int32_t> members = members_of(tree_, of);
    if (members.empty() || of == tree_.modules[0].of) return;
    RecomputePlan plan = whole_modules(members);
    for (PlannedRegion& region : plan) region.on_host = treatment_ == Treatment::on_host;
    Trace trace;
    try {
      trace = runner_.trace_of(plan_words(tree_, plan), kExtent);
    } catch (const Error&) {
      return;  // a module that cannot be computed again is no candidate
    }
    const StepFigures with = runner_.figures_of(trace);
    const auto count = static_cast<int64_t>(members.size());
    const int64_t saved = plain_.after_forward.count - with.after_forward.count;
    const auto kept = static_cast<double>(plain_.after_forward.count - plain_.after_setup.count);
    if (static_cast<double>(saved) < kLeastShare * kept) return;
    ModuleClass& one = tree_.classes[size_t(of)];
    one.saved = saved / count;
    one.cost = {with.again.flops / count, with.again.seconds / static_cast<double>(count)};
    if (treatment_ == Treatment::on_host) return;
    one.calls = recomputed_calls(trace, tree_.modules[size_t(members.back())].path, standard_registry(),
                                 runner_.rates());
  }

  // What a module keeps although it is computed again is what it keeps less if the one before it is, too.
  void measure_list(const std::vector<int32_t>& modules) {
    if (modules.size() < 2) return;
    StepFigures with;
    try {
      with = runner_.run(plan_words(tree_, {{.first = modules.front(), .last = modules.back()}}), kExtent);
    } catch (const Error&) {
      for (const int32_t module : modules) tree_.modules[size_t(module)].list = -1;
      return;
    }
    int64_t bare = plain_.after_forward.count - with.after_forward.count;
    for (const int32_t module : modules) bare -= class_of(module).saved;
    bare = std::max<int64_t>(bare, 0) / static_cast<int64_t>(modules.size() - 1);
    for (const int32_t module : modules) class_of(module).bare = bare;
  }

  ModuleClass& class_of(int32_t module) { return tree_.classes[size_t(tree_.modules[size_t(module)].of)]; }

  StepRunner& runner_;
  const StepFigures& plain_;
  const Treatment treatment_;
  ModuleTree tree_;
};

}  // namespace

std::vector<int32_t> members_of(const ModuleTree& tree, int32_t of) {
  std::vector<int32_t> members;
  for (size_t i = 1; i < tree.modules.size(); ++i)
    if (tree.modules[i].of == of) members.push_back(static_cast<int32_t>(i));
  return members;
}

ModuleTree measured_modules(StepRunner& runner, const StepFigures& plain, Treatment treatment) {
  return CostMeasurement(runner, plain, treatment).measure();
}

bool has_candidates(const ModuleTree& tree) {
  return std::ranges::any_of(tree.classes, [](const ModuleClass& one) { return one.saved > 0; });
}

}  // namespace metaprof
