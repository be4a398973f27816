#include "estimate/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/option_value.h"
#include "estimate/plan_costs.h"
#include "estimate/plan_search.h"
#include "estimate/sizes.h"
#include "planner/integer_program.h"
#include "planner/plan_text.h"

namespace metaprof {
namespace {

// What is computed again, by what is written together: how much of it there is, and what it saves and costs.
std::vector<RecomputedRow> recomputed_rows(const ModuleTree& tree, const RecomputePlan& plan) {
  std::vector<RecomputedRow> rows;
  std::map<std::pair<int32_t, std::vector<int32_t>>, RecomputePlan> alike;
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
  if (text.empty())
    fail("--budget: how much memory may the step take? As 24GiB, or 60% of what it needs now");
  if (!text.ends_with("%")) return parse_size(text);
  return {static_cast<int64_t>(parse_share(text, "--budget") * static_cast<double>(plain.count))};
}

CheckpointRow row_of(const std::string& strategy, const TriedPlan& tried, Bytes budget) {
  return {.strategy = strategy,
          .allocated = tried.figures.allocated,
          .reserved = tried.figures.reserved,
          .recompute_flops = {tried.figures.again.flops},
          .recompute_seconds = tried.figures.again.seconds,
          .holds = tried.figures.allocated <= budget,
          .gap = tried.gap,
          .patterns = tried.words,
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

// Those to try; baselines only where they are asked for.
std::vector<std::string> strategies_of(const std::vector<std::string>& given) {
  const std::vector<std::string> known = plan_strategies();
  for (const std::string& strategy : given) {
    if (strategy == "all") return known;
    if (std::ranges::find(known, strategy) == known.end())
      fail("--strategy: '{}' is not one of: all, {}{}", strategy, fmt::join(known, ", "),
           did_you_mean(strategy, known));
  }
  if (!given.empty()) return given;
  std::vector<std::string> usual = {"modules", "chain"};
  if (can_solve_integer_programs()) usual.emplace_back("operators");
  return usual;
}

}  // namespace

CheckpointReport plan(const Model& model, const PlanOptions& options) {
  check_plan_options(model, options);
  const std::vector<std::string> strategies = strategies_of(options.strategies);
  StepRunner runner(model, options.run);
  const StepFigures plain = runner.run({});
  CheckpointReport report;
  report.model = model.name;
  report.device = platform_of(options.run, model.program).hardware.name;
  report.budget = budget_of(options.budget, plain.allocated);
  report.plain = row_of("none", {.plan = {}, .words = {}, .figures = plain}, report.budget);
  report.flops = plain.flops;
  report.seconds = plain.seconds;
  report.state = plain.after_setup;
  report.elsewhere = plain.elsewhere;
  if (report.budget >= report.elsewhere) {
    const ModuleTree tree = report.plain.holds ? ModuleTree() : measured_modules(runner, plain);
    report.candidates = report.plain.holds || has_candidates(tree);
    PlanSearch search(runner, tree, plain, report.budget);
    for (const std::string& strategy : strategies) {
      const TriedPlan found = search.find(strategy);
      report.rows.push_back(row_of(strategy, found, report.budget));
      report.rows.back().recomputed = recomputed_rows(tree, found.plan);
    }
  }
  report.runs = runner.runs();
  report.notes.push_back(runner.note());
  return report;
}

}  // namespace metaprof
