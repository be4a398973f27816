#include "estimate/plan/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/option_value.h"
#include "estimate/plan/peak_bound.h"
#include "estimate/plan/plan_costs.h"
#include "estimate/plan/plan_files.h"
#include "estimate/plan/plan_search.h"
#include "estimate/plan/strategies/integer_program.h"
#include "estimate/plan/strategies/plan_text.h"
#include "estimate/prepare/sizes.h"

namespace metaprof {
namespace {

// What is computed again, by what is written together: how much of it there is, and what it saves and costs.
std::vector<RecomputedRow> recomputed_rows(const ModuleTree& tree, const RecomputePlan& plan) {
  std::vector<RecomputedRow> rows;
  std::map<std::pair<int32_t, std::vector<int32_t>>, RecomputePlan> alike;  // by class and kept calls
  for (const PlannedRegion& region : plan) {
    const int32_t of = tree.modules[size_t(region.first)].of;
    if (region.first == region.last && region.inside.empty()) {
      alike[{of, region.kept}].push_back(region);
      continue;
    }
    RecomputedRow& row = rows.emplace_back();
    row.type = tree.classes[size_t(of)].type;
    row.patterns = plan_words(tree, {region});
    const int32_t list = tree.modules[size_t(region.first)].list;
    for (int32_t module = region.first; module <= region.last; ++module) {
      if (tree.modules[size_t(module)].list != list) continue;
      const ModuleClass& one = tree.classes[size_t(tree.modules[size_t(module)].of)];
      ++row.count;
      row.saved += {one.saved + (module == region.first ? 0 : one.bare)};
      row.flops += {one.cost.flops};
    }
    row.of = row.count;
  }
  for (const auto& [what, regions] : alike) {
    const ModuleClass& one = tree.classes[size_t(what.first)];
    const auto count = static_cast<int64_t>(regions.size());
    RecomputedRow row{.type = one.type,
                      .patterns = plan_words(tree, regions),
                      .count = count,
                      .of = static_cast<int64_t>(members_of(tree, what.first).size()),
                      .saved = {one.saved * count},
                      .flops = {one.cost.flops * count}};
    for (const int32_t call : what.second) {
      row.saved = row.saved - Bytes{one.calls[size_t(call)].bytes * count};
      row.flops = row.flops - Flops{one.calls[size_t(call)].cost.flops * count};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Bytes budget_of(const std::string& text, Bytes plain) {
  if (!text.ends_with("%")) return parse_size(text);
  return {static_cast<int64_t>(parse_share(text, "--budget") * static_cast<double>(plain.count))};
}

CheckpointRow row_of(const std::string& strategy, const TriedPlan& tried, Bytes budget) {
  return {.strategy = strategy,
          .allocated = tried.figures.allocated,
          .reserved = tried.figures.reserved,
          .recompute_flops = {tried.figures.again.flops},
          .recompute_seconds = tried.figures.again.seconds,
          .over_bus = tried.figures.over_bus,
          .holds = tried.figures.allocated <= budget,
          .gap = tried.gap,
          .patterns = tried.words,
          .recomputed = {}};
}

void check_plan_options(const Model& model, const PlanOptions& options) {
  if (model.is_trace()) fail("{}: a trace is a run that was: nothing of it can be planned", model.name);
  if (options.run.step.mode != Mode::train)
    fail("--mode: {} has no backward, so nothing is kept that could be recomputed",
         to_string(options.run.step.mode));
  if (!options.run.step.checkpoint.empty()) fail("--checkpoint: is what plan looks for");
  if (options.budget.empty() && !options.curve)
    fail("--budget: how much memory may the step take? As 24GiB, or 60% of what it needs now");
}

// Of a captured program only whole modules can be computed again.
std::vector<std::string> strategies_of_captured(const std::string& model,
                                                const std::vector<std::string>& given) {
  for (const std::string& strategy : given)
    if (strategy != "modules" && strategy != "all")
      fail("--strategy {}: {} was captured from a run: only whole modules can be recomputed (modules)",
           strategy, model);
  return {"modules"};
}

// Those to try; baselines only where they are asked for.
std::vector<std::string> strategies_of(const std::vector<std::string>& given) {
  std::vector<std::string> known = plan_strategies();
  for (const std::string& strategy : given) {
    if (strategy == "all") return known;
    if (std::ranges::find(known, strategy) == known.end())
      fail("--strategy: '{}' is not one of: all, {}{}", strategy, fmt::join(known, ", "),
           did_you_mean(strategy, known));
  }
  if (!given.empty()) return given;
  return usual_plan_strategies();
}

class Planner {
 public:
  Planner(const Model& model, const PlanOptions& options)
      : options_(options),
        runner_(model, options.run),
        plain_trace_(runner_.trace_of({}, StepRunner::Extent::all)),
        plain_(runner_.figures_of(plain_trace_)),
        search_(runner_, plain_) {
    report_.model = model.name;
    report_.device = runner_.hardware().name;
    report_.has_budget = !options.budget.empty();
    report_.budget = budget_of(report_.has_budget ? options.budget : "100%", plain_.allocated);
    report_.plain = row_of("none", {.plan = {}, .words = {}, .figures = plain_}, report_.budget);
    report_.flops = plain_.flops;
    report_.seconds = plain_.seconds;
    report_.state = plain_.after_setup;
    report_.elsewhere = plain_.elsewhere;
    const PeakBound bound = peak_bound(plain_trace_);
    report_.largest_call = {.op = bound.op, .module = bound.module, .needs = bound.bytes};
    plain_trace_ = {};
  }

  CheckpointReport planned(const std::vector<std::string>& strategies) {
    if (report_.has_budget && report_.budget >= report_.least()) {
      report_.candidates = report_.plain.holds || !options_.files.empty() ||
                           std::ranges::any_of(strategies, [&](const std::string& strategy) {
                             return has_candidates(search_.tree_of(strategy));
                           });
      for (const std::string& strategy : strategies)
        report_.rows.push_back(found_row(strategy, report_.budget));
    }
    for (const std::string& file : options_.files) add_file(file);
    if (options_.curve) add_curve(strategies);
    if (options_.costs) add_costs(search_.tree_of(""));
    report_.runs = runner_.runs();
    report_.notes.push_back(runner_.note());
    add_note_of_solver(strategies);
    return std::move(report_);
  }

 private:
  static constexpr int kBudgetsOfCurve = 16;

  CheckpointRow found_row(const std::string& strategy, Bytes budget) {
    const TriedPlan found = search_.find(strategy, budget);
    CheckpointRow row = row_of(strategy, found, budget);
    if (!found.plan.empty()) row.recomputed = recomputed_rows(search_.tree_of(strategy), found.plan);
    return row;
  }

  // The usual strategies are then fewer.
  void add_note_of_solver(const std::vector<std::string>& strategies) {
    const bool usual = options_.strategies.empty() && strategies.size() > 1;
    if (const std::string missing = missing_solver(); usual && !missing.empty())
      report_.notes.push_back(fmt::format("the strategy operators is left out: {}", missing));
  }

  // Others' plans are run as they are.
  void add_file(const std::string& file) {
    for (const GivenPlan& given : read_plans(file)) try {
        const StepFigures figures = given.patterns.empty() ? plain_ : runner_.run(given.patterns);
        report_.rows.push_back(
            row_of(given.name, {.plan = {}, .words = given.patterns, .figures = figures}, report_.budget));
      } catch (const Error& error) {
        fail("{}: the plan '{}' cannot be run: {}", file, given.name, error.what());
      }
  }

  // Budgets in equal steps from the peak of the plain step to the smallest that any plan reaches.
  void add_curve(const std::vector<std::string>& strategies) {
    std::vector<CheckpointRow> found = {report_.plain};
    Bytes least = plain_.allocated;
    for (const std::string& strategy : strategies) {
      found.push_back(found_row(strategy, report_.least()));
      least = std::min(least, found.back().allocated);
    }
    for (int part = 1; part < kBudgetsOfCurve; ++part) {
      const Bytes budget{plain_.allocated.count - (plain_.allocated - least).count / kBudgetsOfCurve * part};
      for (const std::string& strategy : strategies) found.push_back(found_row(strategy, budget));
    }
    report_.curve = cheapest_by_peak(std::move(found));
    for (CheckpointRow& row : report_.curve) row.holds = row.allocated <= report_.budget;
  }

  // By falling peak; what another plan beats in both is left out.
  static std::vector<CheckpointRow> cheapest_by_peak(std::vector<CheckpointRow> rows) {
    const auto cost = [](const CheckpointRow& row) {
      return std::pair(row.recompute_flops.count, row.recompute_seconds);
    };
    std::ranges::stable_sort(rows, [&](const CheckpointRow& a, const CheckpointRow& b) {
      return std::pair(a.allocated, cost(a)) < std::pair(b.allocated, cost(b));
    });
    std::vector<CheckpointRow> best;
    for (CheckpointRow& row : rows)
      if (best.empty() || cost(row) < cost(best.back())) best.push_back(std::move(row));
    std::ranges::reverse(best);
    return best;
  }

  void add_costs(const ModuleTree& tree) {
    for (size_t of = 0; of < tree.classes.size(); ++of) {
      const ModuleClass& one = tree.classes[of];
      if (one.saved <= 0) continue;
      CandidateRow row{.type = one.type,
                       .modules = {},
                       .saved = {one.saved},
                       .input = {one.bare},
                       .flops = {one.cost.flops},
                       .seconds = one.cost.seconds,
                       .calls = {}};
      for (const int32_t module : members_of(tree, static_cast<int32_t>(of))) {
        row.modules.push_back(tree.modules[size_t(module)].path);
        row.in_list = row.in_list || tree.modules[size_t(module)].list >= 0;
      }
      for (const OperatorCall& call : one.calls)
        row.calls.push_back({call.op, call.number, {call.bytes}, {call.cost.flops}, call.cost.seconds});
      report_.costs.push_back(std::move(row));
    }
  }

  const PlanOptions& options_;
  StepRunner runner_;
  Trace plain_trace_;
  const StepFigures plain_;
  PlanSearch search_;
  CheckpointReport report_;
};

}  // namespace

CheckpointReport plan(const Model& model, const PlanOptions& options) {
  check_plan_options(model, options);
  std::vector<std::string> strategies;
  if (options.files.empty() || !options.strategies.empty())
    strategies = model.program.captured ? strategies_of_captured(model.name, options.strategies)
                                        : strategies_of(options.strategies);
  return Planner(model, options).planned(strategies);
}

}  // namespace metaprof
