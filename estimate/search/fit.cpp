#include "estimate/search/fit.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "estimate/epoch/epoch.h"
#include "estimate/estimate.h"
#include "estimate/model_run.h"
#include "estimate/parallel.h"
#include "estimate/plan/fitting_plan.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/prepare.h"
#include "estimate/replay.h"
#include "estimate/search/recapture.h"
#include "estimate/search/sized_steps.h"

namespace metaprof {
namespace {

constexpr int kLargest = 1 << 20;
constexpr int kFinestTokens = 64;  // of a batch, to which --find tokens is exact

// Whether anything fits, these say soon; what is cheapest, all that are no baselines.
const std::vector<std::string> kQuickStrategies = {"modules", "chain"};

class Search {
 public:
  Search(const Model& model, const RunOptions& run, const FitOptions& options, WorkspacePlanners& planners,
         SizedSteps& steps)
      : model_(model),
        run_(run),
        options_(options),
        steps_(steps),
        platform_(platform_of(run, model.program)) {
    row_.memory = available_memory(run, platform_);
    if (options.epoch.asked()) {
      epoch_.emplace(model, run, planners);
      lengths_ = read_lengths(options.epoch.lengths);
    }
  }

  FitRow find() {
    const int least = least_size();
    if (!fits(least)) {
      if (epoch_) return without_limit(least);
      row_.allocated = {needed_.allocated_bytes.peak};
      row_.reserved = {needed_.reserved_bytes.peak};
      row_.inputs = inputs_;
      return row_;
    }
    int most = least;  // fits
    while (most < largest_size() && fits_if_possible(2 * most)) most *= 2;
    row_.unbounded = most >= largest_size();
    for (int step = most / 2; step >= finest() && !row_.unbounded; step /= 2)
      if (fits_if_possible(most + step)) most += step;
    row_.largest = most;
    if (options_.plan) take_plan(most);
    return row_;
  }

  /// Why larger inputs than the largest cannot be run at all; empty: they can, and do not fit.
  const std::string& bound() const { return bound_; }

  /// Of the last run.
  const WorkspaceSources& workspaces() const { return workspaces_; }

 private:
  // An export with dynamic sizes takes 2 and more, as the framework's exporter decides.
  int least_size() {
    if (by_tokens()) return static_cast<int>(*std::ranges::max_element(lengths_.samples));
    try {
      (void)with_inputs(model_, sized(1));
    } catch (const Error&) {
      try {
        (void)with_inputs(model_, sized(2));
        return 2;
      } catch (const Error&) {  // the first one says what is wrong
      }
    }
    return 1;
  }

  bool by_tokens() const { return options_.dimension == "tokens"; }
  // Each budget makes other batches, and so runs of its own.
  int finest() const { return by_tokens() ? kFinestTokens : 1; }
  // Of an epoch, a batch of all samples.
  int largest_size() const {
    if (!epoch_) return kLargest;
    const auto all = static_cast<int64_t>(lengths_.samples.size()) *
                     (by_tokens() ? *std::ranges::max_element(lengths_.samples) : 1);
    return static_cast<int>(std::min<int64_t>(all, kLargest));
  }

  std::vector<BatchShape> batches(int size) {
    EpochOptions asked = options_.epoch;
    if (by_tokens()) asked.max_tokens = size;
    return batches_of(lengths_, asked, by_tokens() ? epoch_->samples() : size);
  }

  // What it would take.
  FitRow without_limit(int size) {
    const EpochRun ran = epoch_->play(batches(size), unlimited_memory(), options_.epoch.empty_cache_every);
    row_.allocated = ran.allocated.largest;
    row_.reserved = ran.reserved.largest;
    return row_;
  }

  // With batches of the size the whole epoch runs.
  bool epoch_fits(int size) {
    ++row_.runs;
    const std::vector<BatchShape> all = batches(size);
    const auto ran = epoch_->run_if_it_fits(all, row_.memory, options_.epoch.empty_cache_every);
    if (!ran) return false;
    row_.allocated = ran->allocated.largest;
    row_.reserved = ran->reserved.largest;
    row_.inputs = epoch_->inputs(largest_of(all));
    return true;
  }

  RunOptions sized(int size) const {
    RunOptions run = run_;
    (options_.dimension == "batch" ? run.batch : run.sequence) = size;
    return run;
  }

  // A size that the export does not take ends the search as one that does not fit.
  bool fits_if_possible(int size) {
    try {
      return fits(size);
    } catch (const Error& error) {
      bound_ = error.what();
      return false;
    }
  }

  bool fits(int size) {
    if (epoch_) return epoch_fits(size);
    if (fits_with(size, {})) {
      row_.checkpoint.clear();
      return true;
    }
    if (!options_.plan) return false;
    // What another size needed is mostly enough.
    if (!row_.checkpoint.empty() && fits_with(size, row_.checkpoint)) return true;
    const std::optional<FittingPlan> plan = plan_of(size, kQuickStrategies);
    if (!plan) return false;
    row_.checkpoint = plan->words;
    return fits_with(size, row_.checkpoint);
  }

  std::optional<FittingPlan> plan_of(int size, const std::vector<std::string>& strategies) {
    return fitting_plan(model_, sized(size), strategies, row_.memory,
                        [&](const std::vector<std::string>& words) { return fits_with(size, words); });
  }

  // Of the largest size the cheapest plan; the row's peaks are those with it.
  void take_plan(int size) {
    if (row_.checkpoint.empty()) return;
    row_.recomputed = recomputed_share(model_, sized(size), row_.checkpoint);
    const std::optional<FittingPlan> plan = plan_of(size, usual_plan_strategies());
    if (plan && plan->recomputed < row_.recomputed) {
      row_.checkpoint = plan->words;
      row_.recomputed = plan->recomputed;
    }
    fits_with(size, row_.checkpoint);
  }

  bool fits_with(int size, const std::vector<std::string>& checkpoint) {
    run_ = sized(size);
    if (options_.plan) run_.step.checkpoint = checkpoint_option(checkpoint);
    ++row_.runs;
    SizedSteps::Found found = steps_.find(run_, platform_);
    const SharedSteps::Memory& memory = found.memory;
    inputs_ = std::move(found.inputs);
    workspaces_ = std::move(found.workspaces);
    needed_ = memory.without_limit;
    if (memory.runs_out || memory.peak.reserved_bytes.peak > row_.memory.count) return false;
    row_.allocated = {memory.peak.allocated_bytes.peak};
    row_.reserved = {memory.peak.reserved_bytes.peak};
    row_.inputs = inputs_;
    return true;
  }

  const Model& model_;
  RunOptions run_;
  const FitOptions& options_;
  SizedSteps& steps_;
  const Platform platform_;
  AllocatorNumbers needed_;  // peaks of the last size that was tried, without a limit
  WorkspaceSources workspaces_;
  std::string bound_;
  std::vector<InputRow> inputs_;  // of the last run
  FitRow row_;
  std::optional<Epoch> epoch_;  // nothing: one batch of each size
  Lengths lengths_;             // of its samples
};

// Those of the first row, with the word "batch" for what is looked for.
std::string inputs_of_all(const Model& model, const FitOptions& options, const FitReport& report,
                          const RunOptions& first) {
  const std::vector<InputRow>& inputs = report.rows[0].inputs;
  std::vector<InputRow> others;
  for (const int size : {2, 3}) {
    RunOptions run = first;
    (options.dimension == "batch" ? run.batch : run.sequence) = size;
    try {
      others = inputs_of(with_inputs(model, run));
    } catch (const Error&) {  // the export does not take this size
      continue;
    }
    if (!report.rows[0].largest || *report.rows[0].largest != size) break;
  }
  return inputs_text(inputs, others, options.dimension);
}

// What a row says in any case; a run without training has no optimizer, and a captured program has its own precision and optimizer.
std::vector<std::string> always_shown(const Program& program, const std::vector<RunOptions>& runs) {
  if (program.captured) return {"device"};
  std::vector<std::string> names = {"device", "precision"};
  if (std::ranges::any_of(runs, [](const RunOptions& run) { return run.step.mode == Mode::train; }))
    names.emplace_back("optimizer");
  return names;
}

void check_epoch(const FitOptions& options) {
  if (options.dimension == "sequence") fail("--find sequence: the lengths are those of --lengths");
  if (options.plan) fail("--plan: is made for one batch, not for --lengths; leave one of them out");
  if (options.epoch.max_tokens > 0)
    fail("--max-tokens: says how large batches are; leave it out, and give --find tokens to look for it");
  if (read_lengths(options.epoch.lengths).samples.empty())
    fail("--lengths: batches are given as they are; fit looks for their size, so give lengths of samples");
}

// A capture takes seconds.
constexpr size_t kMostRecaptured = 4;

void check_by_captures(const Model& model, const FitOptions& options, const std::vector<RunOptions>& runs,
                       FitReport& report) {
  if (!can_recapture(model) || options.plan || options.epoch.asked()) return;
  if (runs.size() > kMostRecaptured)
    report.notes.push_back(
        fmt::format("answers follow one capture of the module; up to {} rows are checked by "
                    "captures of their own",
                    kMostRecaptured));
  else
    for (size_t i = 0; i < runs.size(); ++i)
      if (!report.rows[i].unbounded)
        report.notes.push_back(recapture(model, runs[i], options.dimension, report.rows[i]));
}

}  // namespace

void check_fit_options(const FitOptions& options) {
  const bool has_checkpoint = options.grid.has("checkpoint") || !options.grid.common.step.checkpoint.empty();
  if (options.plan && has_checkpoint) fail("--checkpoint: is what --plan looks for; leave one of them out");
  const bool tokens = options.dimension == "tokens";
  if (options.dimension != "batch" && options.dimension != "sequence" && !tokens)
    fail("--find: '{}' is no dimension of the inputs; there are batch, sequence, and with --lengths tokens",
         options.dimension);
  if (tokens && !options.epoch.asked()) fail("--find tokens needs --lengths, the samples that share them");
  if (options.epoch.asked()) check_epoch(options);
  if (options.dimension == "batch" && options.grid.has("batch"))
    fail("--batch: is what fit looks for; --find sequence keeps it");
  if (options.dimension == "sequence" && options.grid.has("sequence"))
    fail("--sequence: is what --find sequence looks for");
}

FitReport fit(const Model& model, const FitOptions& options, const OnProgress& progress) {
  check_fit_options(options);
  std::vector<RunOptions> runs = combinations(options.grid);
  if (options.plan &&
      std::ranges::any_of(runs, [](const RunOptions& run) { return run.step.mode != Mode::train; }))
    fail("--plan: only a training step keeps what could be recomputed; leave --mode out");
  std::vector<RunOptions> shown;
  for (RunOptions& run : runs) {
    shown.push_back(shown_as(run, model.program));
    run = as_captured(std::move(run), model.program);
  }
  FitReport report{.model = model.name,
                   .dimension = options.dimension,
                   .margin = margin_of(options.grid.common),
                   .trains = runs[0].step.mode == Mode::train,
                   .planned = options.plan,
                   .columns = telling_options(shown, RunOptions(), always_shown(model.program, shown)),
                   .rows = std::vector<FitRow>(runs.size()),
                   .inputs = {},
                   .notes = {}};
  WorkspacePlanners planners;
  SizedSteps steps(model, planners);
  std::vector<std::string> notes(runs.size()), bounds(runs.size());
  const auto search_one = [&](size_t i) {
    Search search(model, runs[i], options, planners, steps);
    report.rows[i] = search.find();
    report.rows[i].options = shown_options(shown[i]);
    notes[i] = workspace_note(search.workspaces());
    bounds[i] = search.bound();
  };
  in_parallel(runs.size(), search_one, progress);
  check_by_captures(model, options, shown, report);
  if (options.epoch.asked())
    report.notes.emplace_back("each size was run with all samples of --lengths");
  else
    report.inputs = inputs_of_all(model, options, report, runs[0]);
  const std::set<std::string> once(notes.begin(), notes.end());
  for (const std::string& note : once)
    if (!note.empty()) report.notes.push_back(note);
  for (const std::string& bound : std::set<std::string>(bounds.begin(), bounds.end()))
    if (!bound.empty()) report.notes.push_back("the search ended at what the export takes: " + bound);
  return report;
}

}  // namespace metaprof
