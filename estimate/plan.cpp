#include "estimate/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "estimate/module_classes.h"
#include "estimate/parallel.h"
#include "estimate/sizes.h"
#include "estimate/step_run.h"
#include "planner/module_plans.h"
#include "planner/path_patterns.h"

namespace metaprof {
namespace {

// Less than this share of what the forward keeps is not worth a checkpoint of its own.
constexpr double kLeastShare = 1e-3;

// A plan that was run.
struct Tried {
  std::vector<int32_t> modules;
  std::vector<std::string> patterns;
  StepFigures figures;
};

std::vector<std::string> paths_of(const ModuleTree& tree, const std::vector<int32_t>& modules) {
  std::vector<std::string> paths;
  for (const int32_t module : modules) paths.push_back(tree.modules[size_t(module)].path);
  return paths;
}

// All modules of a class.
std::vector<int32_t> members_of(const ModuleTree& tree, int32_t of) {
  std::vector<int32_t> members;
  for (size_t i = 1; i < tree.modules.size(); ++i)
    if (tree.modules[i].of == of) members.push_back(static_cast<int32_t>(i));
  return members;
}

class ModuleSearch {
 public:
  ModuleSearch(StepRunner& runner, const StepFigures& plain, Bytes budget)
      : runner_(runner), plain_(plain), budget_(budget), tree_(module_classes(runner.program())) {
    for (const Module& module : tree_.modules)
      if (!module.path.empty()) paths_.push_back(module.path);
  }

  const ModuleTree& tree() const { return tree_; }

  // Whether anything saves memory when it is computed again.
  bool find_costs() {
    in_parallel(tree_.classes.size(), [&](size_t of) { measure(static_cast<int32_t>(of)); });
    return std::ranges::any_of(tree_.classes, [](const ModuleClass& one) { return one.saved > 0; });
  }

  // The cheapest that holds, or the one with the smallest peak.
  Tried find() {
    best_ = {.modules = {}, .patterns = {}, .figures = plain_};
    smallest_ = *best_;
    if (!holds(plain_)) {
      best_.reset();
      search_series();
    }
    if (!best_) return smallest_;
    leave_out();
    return *best_;
  }

 private:
  bool holds(const StepFigures& figures) const { return figures.allocated <= budget_; }

  // What one module of a class saves, and what it costs to compute it again: the step is run with all of them
  // computed again.
  void measure(int32_t of) {
    const std::vector<int32_t> members = members_of(tree_, of);
    if (members.empty()) return;
    StepFigures with;
    try {
      with = runner_.run(path_patterns(paths_of(tree_, members), paths_));
    } catch (const Error&) {
      return;  // a module that cannot be computed again is no candidate
    }
    const auto count = static_cast<int64_t>(members.size());
    const int64_t saved = plain_.after_forward.count - with.after_forward.count;
    const auto kept = static_cast<double>(plain_.after_forward.count - plain_.after_setup.count);
    if (static_cast<double>(saved) < kLeastShare * kept) return;
    ModuleClass& one = tree_.classes[size_t(of)];
    one.saved = saved / count;
    one.cost = {with.again.flops / count, with.again.seconds / static_cast<double>(count)};
  }

  Tried run(std::vector<int32_t> modules) {
    Tried tried{.modules = std::move(modules), .patterns = {}, .figures = {}};
    tried.patterns = path_patterns(paths_of(tree_, tried.modules), paths_);
    tried.figures = runner_.run(tried.patterns);
    if (tried.figures.allocated < smallest_.figures.allocated) smallest_ = tried;
    if (holds(tried.figures) && (!best_ || tried.figures.again < best_->figures.again)) best_ = tried;
    return tried;
  }

  // What is computed again as a whole is alive as a whole, so a smaller limit on one module may hold where a
  // larger one does not.
  void search_series() {
    std::set<int64_t, std::greater<>> limits;
    for (const ModuleClass& one : tree_.classes)
      if (one.saved > 0) limits.insert(one.saved);
    for (const int64_t largest : limits) search(*module_plans(tree_, {.largest = largest}));
  }

  // The first plan of the series that holds: the budget of the strategy, bisected. Plans that cost more than
  // one that holds are not run.
  void search(const PlanSeries& series) {
    size_t fails = 0, end = series.size();
    while (end > 1 && best_ && series.figures(end - 1).cost >= best_->figures.again) --end;
    if (end <= 1) return;
    if (!holds(run(series.regions(end - 1).modules).figures)) return;
    for (size_t holding = end - 1; holding - fails > 1;) {
      const size_t middle = fails + (holding - fails) / 2;
      (holds(run(series.regions(middle).modules).figures) ? holding : fails) = middle;
    }
  }

  // Costs that add up are not all: of each class the modules with the latest forward are kept again, as many
  // as the budget allows. The dearest first.
  void leave_out() {
    std::set<int32_t> chosen;
    for (const int32_t module : best_->modules) chosen.insert(tree_.modules[size_t(module)].of);
    std::vector<int32_t> classes(chosen.begin(), chosen.end());
    std::ranges::stable_sort(classes, [&](int32_t a, int32_t b) {
      return tree_.classes[size_t(b)].cost < tree_.classes[size_t(a)].cost;
    });
    for (const int32_t of : classes) {
      const std::vector<int32_t> before = best_->modules;
      const auto count = size_t(std::ranges::count_if(
          before, [&](int32_t module) { return tree_.modules[size_t(module)].of == of; }));
      size_t least = 0, most = count;  // how many stay; `most` holds
      while (least < most) {
        const size_t middle = least + (most - least) / 2;
        if (holds(run(first_of_class(before, of, middle)).figures))
          most = middle;
        else
          least = middle + 1;
      }
    }
  }

  // The modules without those of a class beyond the first `count`.
  std::vector<int32_t> first_of_class(const std::vector<int32_t>& modules, int32_t of, size_t count) const {
    std::vector<int32_t> fewer;
    for (const int32_t module : modules)
      if (tree_.modules[size_t(module)].of != of || count-- > 0) fewer.push_back(module);
    return fewer;
  }

  StepRunner& runner_;
  const StepFigures& plain_;
  const Bytes budget_;
  ModuleTree tree_;
  std::vector<std::string> paths_;
  std::optional<Tried> best_;
  Tried smallest_;
};

// By kind: how many are computed again, and what that saves and costs.
std::vector<RecomputedRow> recomputed_rows(const ModuleTree& tree, const std::vector<int32_t>& modules) {
  std::map<int32_t, std::vector<int32_t>> by_class;
  for (const int32_t module : modules) by_class[tree.modules[size_t(module)].of].push_back(module);
  std::vector<std::string> all;
  for (const Module& module : tree.modules)
    if (!module.path.empty()) all.push_back(module.path);
  std::vector<RecomputedRow> rows;
  for (const auto& [of, members] : by_class) {
    const ModuleClass& one = tree.classes[size_t(of)];
    const auto count = static_cast<int64_t>(members.size());
    rows.push_back({.type = one.type,
                    .patterns = path_patterns(paths_of(tree, members), all),
                    .count = count,
                    .of = static_cast<int64_t>(members_of(tree, of).size()),
                    .saved = {one.saved * count},
                    .flops = {one.cost.flops * count}});
  }
  return rows;
}

Bytes budget_of(const std::string& text, Bytes plain) {
  if (text.empty())
    fail("--budget: how much memory may the step take? As 24GiB, or 60% of what it needs now");
  if (!text.ends_with("%")) return parse_size(text);
  return {static_cast<int64_t>(parse_share(text, "--budget") * static_cast<double>(plain.count))};
}

CheckpointRow row_of(const std::string& strategy, const Tried& tried, Bytes budget) {
  return {.strategy = strategy,
          .allocated = tried.figures.allocated,
          .reserved = tried.figures.reserved,
          .recompute_flops = {tried.figures.again.flops},
          .recompute_seconds = tried.figures.again.seconds,
          .holds = tried.figures.allocated <= budget,
          .patterns = tried.patterns,
          .recomputed = {}};
}

void check_plan_options(const Model& model, const PlanOptions& options) {
  if (model.is_trace()) fail("{}: a trace is a run that was: nothing of it can be planned", model.name);
  if (model.program.captured)
    fail("{}: was captured from a run, whose steps are its own: nothing of it can be planned", model.name);
  if (options.run.step.mode != Mode::train)
    fail("--mode: {} has no backward, so nothing is kept that could be computed again",
         to_string(options.run.step.mode));
  if (!options.run.step.checkpoint.empty()) fail("--checkpoint: is what plan looks for");
}

}  // namespace

std::vector<std::string> plan_strategies() { return {"modules"}; }

CheckpointReport plan(const Model& model, const PlanOptions& options) {
  check_plan_options(model, options);
  StepRunner runner(model, options.run);
  const StepFigures plain = runner.run({});
  CheckpointReport report;
  report.model = model.name;
  report.device = platform_of(options.run, model.program).hardware.name;
  report.budget = budget_of(options.budget, plain.allocated);
  report.plain = row_of("none", {.modules = {}, .patterns = {}, .figures = plain}, report.budget);
  report.flops = plain.flops;
  report.seconds = plain.seconds;
  report.state = plain.after_setup;
  if (report.budget >= report.state) {
    ModuleSearch search(runner, plain, report.budget);
    report.candidates = report.plain.holds || search.find_costs();
    const Tried found = search.find();
    report.rows.push_back(row_of("modules", found, report.budget));
    report.rows.back().recomputed = recomputed_rows(search.tree(), found.modules);
  }
  report.runs = runner.runs();
  report.notes.push_back(runner.note());
  return report;
}

}  // namespace metaprof
