#include "estimate/search/sweep.h"

#include <deque>
#include <set>

#include "core/error.h"
#include "estimate/epoch/epoch.h"
#include "estimate/estimate.h"
#include "estimate/parallel.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/prepare.h"
#include "estimate/prepare/run_groups.h"
#include "estimate/search/input_programs.h"
#include "estimate/search/shared_steps.h"

namespace metaprof {
namespace {

void set_verdict(SweepRow& row, const Verdict& verdict) {
  row.fits = verdict.fits;
  if (!verdict.at_least) row.needed = verdict.reserved.count;
}

void set_peak(SweepRow& row, const AllocatorNumbers& peak) {
  row.allocated = peak.allocated_bytes.peak;
  row.requested = peak.requested_bytes.peak;
  row.reserved = peak.reserved_bytes.peak;
}

void set_flops(SweepRow& row, const ByPhase<Flops>& flops) {
  row.flops_forward = flops.forward.count;
  row.flops_backward = (flops.backward + flops.recompute).count;
  row.flops_recompute = flops.recompute.count;
}

class Sweeping {
 public:
  Sweeping(const Model& model, const std::vector<RunOptions>& runs, const EpochOptions& epoch)
      : model_(model),
        runs_(runs),
        epoch_(epoch),
        programs_(model),
        rows_(runs.size()),
        notes_(runs.size()) {}

  void run(const OnProgress& progress) {
    const std::vector<RunGroup> groups = group_runs(runs_);  // those of the same inputs beside each other
    const auto run_group = [&](size_t i) {
      std::deque<SharedSteps> known;
      bool shares = !model_.is_trace() && !epoch_.asked();
      for (const size_t run : groups[i].runs) {
        shares = shares && runs_with_others(run, groups[i], known);
        if (!shares) run_alone(run);
      }
    };
    in_parallel(groups.size(), run_group, progress);
  }

  std::vector<SweepRow>& rows() { return rows_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // False: this one and those behind it are run alone, be it to see which of them cannot be run, and why.
  bool runs_with_others(size_t index, const RunGroup& group, std::deque<SharedSteps>& known) {
    const RunOptions& run = runs_[index];
    try {
      const Platform platform = platform_of(run, model_.program);
      SharedSteps* steps = steps_on(platform, run, group, known);
      if (!steps) return false;
      SweepRow& row = rows_[index];
      const SharedSteps::Memory memory = steps->memory(run, platform);
      row.inputs = inputs_of(*programs_.of(run));
      row.parameter_bytes = steps->parameter_bytes().count;
      row.saved_bytes = steps->saved_bytes().count;
      set_flops(row, steps->flops());
      set_peak(row, memory.peak);
      set_verdict(row, memory.verdict);
      notes_[index] = workspace_note(steps->workspaces());
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Null: its runs cannot share steps.
  SharedSteps* steps_on(const Platform& platform, const RunOptions& run, const RunGroup& group,
                        std::deque<SharedSteps>& known) {
    for (SharedSteps& steps : known)
      if (steps.hold_on(platform)) return &steps;
    std::optional<SharedSteps> steps =
        SharedSteps::run(*programs_.of(run), run, platform, group.optimizers, planners_);
    return steps ? &known.emplace_back(std::move(*steps)) : nullptr;
  }

  void run_alone(size_t index) {
    SweepRow& row = rows_[index];
    try {
      const ProfileReport report = report_of(runs_[index]);
      row.inputs = report.inputs;
      row.parameter_bytes = report.memory.parameters.all.bytes.count;
      row.saved_bytes = report.memory.saved.bytes.count;
      set_flops(row, report.counts.total.counted);
      set_peak(row, report.memory.phases.peak);
      if (report.epoch) {
        row.allocated = report.epoch->needed_allocated().count;
        row.reserved = report.epoch->needed().count;
      }
      set_verdict(row, verdict_of(report));
      notes_[index] = workspace_note(report.workspaces);
    } catch (const Error& error) {
      row.error = error.what();
    }
  }

  ProfileReport report_of(const RunOptions& run) {
    return epoch_.asked() ? estimate_epoch(model_, run, epoch_, planners_, StepsToRun::until_alike).report
                          : estimate(model_, run, planners_).report;
  }

  const Model& model_;
  const std::vector<RunOptions>& runs_;
  const EpochOptions& epoch_;
  InputPrograms programs_;
  WorkspacePlanners planners_;
  std::vector<SweepRow> rows_;
  std::vector<std::string> notes_;  // by run
};

}  // namespace

SweepReport sweep(const Model& model, const Grid& grid, const EpochOptions& epoch, const Shard& shard,
                  const OnProgress& progress) {
  std::vector<RunOptions> runs = combinations(grid);
  std::vector<RunOptions> shown;
  for (RunOptions& run : runs) {
    shown.push_back(shown_as(run, model.program));
    run = as_captured(std::move(run), model.program);
  }
  (void)with_inputs(model, runs[0]);  // inputs that the model does not have are no finding
  const auto [begin, end] = shard.range(runs.size());
  const std::vector<RunOptions> own(runs.data() + begin, runs.data() + end);
  Sweeping sweeping(model, own, epoch);
  sweeping.run(progress);
  for (size_t i = begin; i < end; ++i) sweeping.rows()[i - begin].options = shown_options(shown[i]);
  SweepReport report{.model = model.name,
                     .columns = telling_options(shown, shown[0],
                                                {"device", "precision", "optimizer", "optimizer_impl",
                                                 "checkpoint", "accumulate", "sequence", "batch"}),
                     .differing = telling_options(shown, shown[0], {}),
                     .rows = std::move(sweeping.rows()),
                     .notes = {}};
  if (epoch.asked())
    report.notes.emplace_back(
        "memory is of all steps of --lengths; FLOPs and inputs are of its batch with the most tokens");
  const std::set<std::string> once(sweeping.notes().begin(), sweeping.notes().end());
  for (const std::string& note : once)
    if (!note.empty()) report.notes.push_back(note);
  return report;
}

}  // namespace metaprof
