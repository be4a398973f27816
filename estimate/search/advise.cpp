#include "estimate/search/advise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/model_run.h"
#include "estimate/parallel.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/prepare.h"
#include "estimate/prepare/run_groups.h"
#include "estimate/replay.h"
#include "estimate/search/shared_steps.h"
#include "step/repeated_modules.h"

namespace metaprof {
namespace {

// Behind a pattern of --checkpoint: what is saved waits in host memory.
constexpr std::string_view kToHost = "{>host}";

// Options that are set together: one thing that a user may change.
using Change = std::vector<std::pair<std::string, std::string>>;

RunOptions changed(RunOptions options, const Change& change) {
  for (const auto& [name, text] : change) set_from_text(options, run_option(name), text);
  return options;
}

// The first dimension of the first input.
int64_t batch_of(const Program& program) {
  const std::vector<InputRow> inputs = inputs_of(program);
  return inputs.empty() || inputs[0].sizes.empty() ? 1 : inputs[0].sizes[0];
}

std::vector<Change> changes_for(const Program& program, const RunOptions& options) {
  const StepOptions& step = options.step;
  std::vector<Change> changes;
  if (step.mode == Mode::train && step.optimizer != "none") {
    if (step.optimizer_impl != OptimizerImpl::fused) changes.push_back({{"optimizer_impl", "fused"}});
    if (step.optimizer_impl != OptimizerImpl::for_loop) changes.push_back({{"optimizer_impl", "for-loop"}});
    if (step.optimizer == "adamw" && step.optimizer_impl == OptimizerImpl::standard)
      changes.push_back({{"optimizer", "adamw-8bit"}});
  }
  if (step.precision == Precision::fp32) {
    changes.push_back({{"precision", "amp-bf16"}});
    changes.push_back({{"precision", "bf16"}});
  }
  const std::string blocks = repeated_modules(program);
  if (step.mode == Mode::train && step.checkpoint.empty() && !blocks.empty()) {
    changes.push_back({{"checkpoint", blocks}});
    if (options.device != "cpu") changes.push_back({{"checkpoint", blocks + std::string(kToHost)}});
  }
  const int64_t batch = batch_of(program);
  for (const int64_t parts : {2, 4})  // the same effective batch
    if (step.mode == Mode::train && step.accumulate == 1 && batch % parts == 0)
      changes.push_back({{"accumulate", std::to_string(parts)}, {"batch", std::to_string(batch / parts)}});
  const bool images =
      std::ranges::any_of(inputs_of(program), [](const InputRow& row) { return row.sizes.size() == 4; });
  if (images && !step.channels_last) changes.push_back({{"channels_last", "true"}});
  if (options.alloc_conf.empty()) changes.push_back({{"alloc_conf", "expandable_segments:True"}});
  return changes;
}

// Training adapters beside frozen weights, as peft does for the family: another training, and no switch of this one.
std::vector<Change> adapters_for(const Program& program, const RunOptions& options) {
  const StepOptions& step = options.step;
  if (program.usual.lora_targets.empty() || !options.lora.empty() || !options.base_weights.empty() ||
      step.mode != Mode::train || step.optimizer == "none")
    return {};
  return {{{"lora", "r=8"}}, {{"lora", "r=8"}, {"base_weights", "nf4-double"}}};
}

class Advisor {
 public:
  Advisor(const Model& model, const RunOptions& options)
      : model_(model), options_(options), platform_(platform_of(options, model.program)) {}

  AdviceRow row_of(const Change& change) {
    const RunOptions run = changed(options_, change);
    const std::optional<Program> other = changed_inputs(model_, run);
    const Program& program = other ? *other : model_.program;
    WorkspaceSources workspaces;
    const Trace trace = run_model(program, run, platform_, planners_, workspaces);
    const Bytes available = available_memory(run, platform_);
    Phases need = replay_trace(trace, run, platform_, available);
    const bool fits = !need.out_of_memory && need.peak.reserved_bytes.peak <= available.count;
    if (need.out_of_memory) need = replay_trace(trace, run, platform_, unlimited_memory());
    const ByPhase<Flops> flops = counted_flops(trace);
    return {.changes = change,
            .allocated = {need.peak.allocated_bytes.peak},
            .reserved = {need.peak.reserved_bytes.peak},
            .flops = flops.total(),
            .fits = fits};
  }

  static AdviceRow row_of(const Change& change, const SharedSteps::Memory& memory,
                          const ByPhase<Flops>& flops, Bytes available) {
    const AllocatorNumbers& need = memory.runs_out ? memory.without_limit : memory.peak;
    return {.changes = change,
            .allocated = {need.allocated_bytes.peak},
            .reserved = {need.reserved_bytes.peak},
            .flops = flops.total(),
            .fits = !memory.runs_out && need.reserved_bytes.peak <= available.count};
  }

  // As it is. `changes` are run together with it: they have most in common. Errors: as run_steps.
  AdviceRow base_beside(std::vector<Change> changes) {
    changes.insert(changes.begin(), Change());
    find(changes);
    const std::optional<AdviceRow>& row = known_.at({});
    return row ? *row : row_of({});
  }

  void remember(AdviceRow row) {
    const Change changes = row.changes;
    known_.emplace(changes, std::move(row));
  }

  // All that can be run, the smallest first. What was run before is remembered.
  std::vector<AdviceRow> rows_of(const std::vector<Change>& changes) {
    std::vector<Change> unknown;
    for (const Change& change : changes)
      if (!known_.contains(change)) unknown.push_back(change);
    find(unknown);
    std::vector<AdviceRow> rows;
    for (const Change& change : changes)
      if (const std::optional<AdviceRow>& row = known_.at(change)) rows.push_back(*row);
    std::ranges::stable_sort(rows, {}, [](const AdviceRow& row) { return row.reserved.count; });
    return rows;
  }

 private:
  void find(const std::vector<Change>& wanted) {
    std::vector<Change> changes;
    std::vector<RunOptions> runs;
    for (const Change& change : wanted) try {
        runs.push_back(changed(options_, change));
        changes.push_back(change);
      } catch (const Error&) {  // a batch that no option takes
        known_[change] = std::nullopt;
      }
    const std::vector<RunGroup> groups = group_runs(runs);
    std::vector<std::optional<AdviceRow>> found(changes.size());
    in_parallel(groups.size(), [&](size_t i) {
      if (find_together(groups[i], changes, runs, found)) return;
      for (const size_t run : groups[i].runs) try {
          found[run] = row_of(changes[run]);
        } catch (const Error&) {  // an optimizer without that code, a batch that the export does not take
        }
    });
    for (size_t i = 0; i < changes.size(); ++i) known_.emplace(changes[i], std::move(found[i]));
  }

  // Runs that dispatch the same are one; false: they are not, or one of them fails.
  bool find_together(const RunGroup& group, const std::vector<Change>& changes,
                     const std::vector<RunOptions>& runs, std::vector<std::optional<AdviceRow>>& found) try {
    const RunOptions& first = runs[group.runs[0]];
    const std::optional<Program> other = changed_inputs(model_, first);
    auto steps =
        SharedSteps::run(other ? *other : model_.program, first, platform_, group.optimizers, planners_);
    if (!steps) return false;
    for (const size_t run : group.runs)
      found[run] = row_of(changes[run], steps->memory(runs[run], platform_), steps->flops(),
                          available_memory(runs[run], platform_));
    return true;
  } catch (const Error&) {
    return false;
  }

  const Model& model_;
  const RunOptions& options_;
  const Platform platform_;
  WorkspacePlanners planners_;
  std::map<Change, std::optional<AdviceRow>> known_;  // nothing: it cannot be run
};

bool touches(const Change& change, const Change& other) {
  return std::ranges::any_of(change, [&](const auto& setting) {
    return std::ranges::any_of(other, [&](const auto& before) { return before.first == setting.first; });
  });
}

bool changes_numbers(const Change& change) {
  return std::ranges::any_of(change, [](const auto& setting) {
    return setting.first == "precision" || setting.first == "optimizer";
  });
}

// Its way to the host and back is no FLOPs, and slower than most of what could be computed instead.
bool goes_to_host(const Change& change) {
  return std::ranges::any_of(change, [](const auto& setting) { return setting.second.ends_with(kToHost); });
}

bool recomputes(const Change& change) {
  return std::ranges::any_of(change, [](const auto& setting) { return setting.first == "checkpoint"; });
}

bool any_fits(const std::vector<AdviceRow>& rows) {
  return std::ranges::any_of(rows, [](const AdviceRow& row) { return row.fits; });
}

bool suffices(const AdviceRow& row, const AdviceRow& before) {
  return row.fits && row.flops <= before.flops && !goes_to_host(row.changes);
}

// `best` with each of the others, the smallest first. The first of them is taken by itself if it fits and computes no more
// than `best`: none can be better. What recomputes computes more than all else: it is run only where nothing else fits.
std::vector<AdviceRow> one_more(Advisor& advisor, const AdviceRow& best, const std::vector<Change>& singles) {
  std::vector<Change> plain, all;
  for (const Change& single : singles) {
    if (touches(single, best.changes)) continue;
    Change both = best.changes;
    both.insert(both.end(), single.begin(), single.end());
    if (!recomputes(single)) plain.push_back(both);
    all.push_back(std::move(both));
  }
  if (!plain.empty())
    if (std::vector<AdviceRow> first = advisor.rows_of({plain[0]});
        !first.empty() && suffices(first[0], best))
      return first;
  std::vector<AdviceRow> rows = advisor.rows_of(plain);
  return any_fits(rows) ? rows : advisor.rows_of(all);
}

// One switch after the other, each time the one that helps most, until it fits or nothing helps.
AdviceRow combine(Advisor& advisor, AdviceRow best, const std::vector<Change>& singles) {
  while (!best.fits) {
    std::vector<AdviceRow> rows = one_more(advisor, best, singles);
    if (rows.empty() || (!any_fits(rows) && rows[0].reserved >= best.reserved)) break;
    // Of those that fit the one that computes least.
    std::ranges::stable_sort(rows, {}, [](const AdviceRow& row) {
      return std::tuple(!row.fits, row.fits && goes_to_host(row.changes),
                        row.fits ? row.flops.count : row.reserved.count);
    });
    best = std::move(rows[0]);
  }
  return best;
}

std::vector<Change> harmless_of(const std::vector<Change>& changes) {
  std::vector<Change> harmless;
  std::ranges::remove_copy_if(changes, std::back_inserter(harmless), changes_numbers);
  return harmless;
}

// Another precision or optimizer changes the numbers of a step: it is taken only where the other switches do not suffice.
AdviceRow best_of(Advisor& advisor, const AdviceRow& base, const std::vector<Change>& changes) {
  const std::vector<Change> harmless = harmless_of(changes);
  AdviceRow best = combine(advisor, base, harmless);
  return best.fits || harmless.size() == changes.size() ? best : combine(advisor, base, changes);
}

// Where no switch suffices: adapters, with the other switches if they are needed. Both are rows of the report.
void try_adapters(Advisor& advisor, const std::vector<Change>& adapters, std::vector<Change> changes,
                  AdviceReport& report) {
  std::ranges::move(advisor.rows_of(adapters), std::back_inserter(report.rows));
  changes.insert(changes.end(), adapters.begin(), adapters.end());
  AdviceRow best = combine(advisor, report.base, changes);
  if (best.fits) report.best = std::move(best);
}

// What a report says before it looks for anything.
AdviceReport heading_of(const Model& model, const RunOptions& options, const Program& program) {
  const Platform platform = platform_of(options, model.program);
  AdviceReport report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.inputs = inputs_text(inputs_of(program));
  report.available = available_memory(options, platform);
  report.outside = outside_of(options, platform).most;
  report.margin = margin_of(options);
  report.memory = platform.hardware.memory;
  return report;
}

Flops flops_of(const ProfileReport& report) { return report.counts.total.counted.total(); }

// Nothing where it is not known what it would need without a limit.
std::optional<AdviceRow> row_of(const ProfileReport& as_it_is) {
  if (!as_it_is.needed_memory) return std::nullopt;
  return AdviceRow{.changes = {},
                   .allocated = *as_it_is.needed_allocated,
                   .reserved = *as_it_is.needed_memory,
                   .flops = flops_of(as_it_is),
                   .fits = false};
}

// What these steps need with the optimizer's fused code; nothing where they were not run with it.
std::optional<AdviceRow> fused_row_of(const Estimate& as_it_is) {
  if (as_it_is.fused.empty()) return std::nullopt;
  const Platform& platform = as_it_is.platform;
  Requests requests = requests_of(as_it_is.trace, as_it_is.fused, platform.device());
  repeat_last_step(requests, as_it_is.repeated);
  const Bytes available = available_memory(as_it_is.options, platform);
  return Advisor::row_of({{"optimizer_impl", "fused"}},
                         SharedSteps::memory(requests, as_it_is.options, platform),
                         as_it_is.report.counts.total.counted, available);
}

AdviceReport advise(const Model& model, const RunOptions& given, const Estimate* as_it_is) {
  if (model.is_trace()) fail("{}: a trace is a run that was: it has no switches", model.name);
  const RunOptions options = as_captured(given, model.program);
  Advisor advisor(model, options);
  const std::optional<Program> other = changed_inputs(model, options);
  const Program& program = other ? *other : model.program;
  AdviceReport report = heading_of(model, options, program);
  const std::vector<Change> changes = changes_for(program, options);
  if (const std::optional<AdviceRow> known = as_it_is ? row_of(as_it_is->report) : std::nullopt) {
    advisor.remember(*known);
    if (std::optional<AdviceRow> fused = fused_row_of(*as_it_is)) advisor.remember(std::move(*fused));
    report.base = *known;
  } else {
    report.base = advisor.base_beside(changes);
  }
  if (!as_it_is) report.rows = advisor.rows_of(changes);
  report.best = best_of(advisor, report.base, changes);
  if (!as_it_is && !report.best.fits)
    if (const std::vector<Change> adapters = adapters_for(model.program, options); !adapters.empty())
      try_adapters(advisor, adapters, changes, report);
  return report;
}

}  // namespace

AdviceReport advise(const Model& model, const RunOptions& options) { return advise(model, options, nullptr); }

AdviceReport find_fix(const Model& model, const RunOptions& options, const Estimate& as_it_is) {
  return advise(model, options, &as_it_is);
}

}  // namespace metaprof
