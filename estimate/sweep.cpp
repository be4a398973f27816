#include "estimate/sweep.h"

#include <set>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/input_programs.h"
#include "estimate/parallel.h"
#include "estimate/run_groups.h"

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
  Sweeping(const Model& model, const std::vector<RunOptions>& runs)
      : model_(model), runs_(runs), programs_(model), rows_(runs.size()), notes_(runs.size()) {
    for (size_t i = 0; i < runs.size(); ++i) rows_[i].options = shown_options(runs[i]);
  }

  void run(const Progress& progress) {
    const std::vector<RunGroup> groups = group_runs(runs_);  // those of the same inputs beside each other
    const auto run_group = [&](size_t i) {
      if (runs_in_turn(groups[i])) return;
      for (const size_t run : groups[i].runs) run_alone(run);
    };
    in_parallel(groups.size(), run_group, progress);
  }

  std::vector<SweepRow>& rows() { return rows_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // False: each has to be run alone, be it to see which of them cannot be run.
  bool runs_in_turn(const RunGroup& group) {
    if (model_.is_trace()) return false;
    const RunOptions& first = runs_[group.runs[0]];
    try {
      const Platform platform = platform_of(first, model_.program);
      WorkspaceSources workspaces;
      const std::optional<StepsInTurn> steps =
          run_in_turn(*programs_.of(first), first, platform, group.optimizers, planners_, workspaces);
      if (steps) read(*steps, group, platform, workspaces);
      return steps.has_value();
    } catch (const Error&) {
      return false;
    }
  }

  void read(const StepsInTurn& steps, const RunGroup& group, const Platform& platform,
            const WorkspaceSources& workspaces) {
    const Parameters parameters = parameters_of(steps.trace);
    const Saved saved = saved_by_first_forward(steps.trace, platform.device());
    const Counts counts = count(steps.trace, rates_of(platform.hardware));
    const std::vector<InputRow> inputs = inputs_of(*programs_.of(runs_[group.runs[0]]));
    std::vector<Requests> requests;
    for (const std::vector<Event>& events : steps.events) {
      requests.push_back(requests_of(steps.trace, events, platform.device()));
      repeat_last_step(requests.back(), runs_[group.runs[0]].step.steps - steps.steps);
    }
    for (size_t i = 0; i < group.runs.size(); ++i) {
      SweepRow& row = rows_[group.runs[i]];
      row.inputs = inputs;
      row.parameter_bytes = parameters.all.bytes.count;
      row.saved_bytes = saved.bytes.count;
      set_flops(row, counts.total.counted);
      notes_[group.runs[i]] = workspace_note(workspaces);
      try {
        read_memory(requests[group.optimizer[i]], runs_[group.runs[i]], row);
      } catch (const Error& error) {
        row = {.options = std::move(row.options), .error = error.what(), .needed = {}};
      }
    }
  }

  void read_memory(const Requests& requests, const RunOptions& run, SweepRow& row) {
    const Platform platform = platform_of(run, model_.program);
    const Phases phases = replay_requests(requests, run, platform, available_memory(run, platform));
    std::optional<Bytes> needed;
    if (phases.out_of_memory) {
      const Phases without_limit = replay_requests(requests, run, platform, unlimited_memory());
      if (!without_limit.out_of_memory) needed = Bytes{without_limit.peak.reserved_bytes.peak};
    }
    set_peak(row, phases.peak);
    set_verdict(row, verdict_of(run, platform, phases, needed));
  }

  void run_alone(size_t index) {
    SweepRow& row = rows_[index];
    try {
      const ProfileReport report = estimate(model_, runs_[index], planners_).report;
      row.inputs = report.inputs;
      row.parameter_bytes = report.memory.parameters.all.bytes.count;
      row.saved_bytes = report.memory.saved.bytes.count;
      set_flops(row, report.counts.total.counted);
      set_peak(row, report.memory.phases.peak);
      set_verdict(row, verdict_of(report));
      notes_[index] = workspace_note(report.workspaces);
    } catch (const Error& error) {
      row.error = error.what();
    }
  }

  const Model& model_;
  const std::vector<RunOptions>& runs_;
  InputPrograms programs_;
  WorkspacePlanners planners_;
  std::vector<SweepRow> rows_;
  std::vector<std::string> notes_;  // by run
};

}  // namespace

SweepReport sweep(const Model& model, const Grid& grid, const Progress& progress) {
  const std::vector<RunOptions> runs = combinations(grid);
  (void)with_inputs(model, runs[0]);  // inputs that the model does not have are no finding
  Sweeping sweeping(model, runs);
  sweeping.run(progress);
  SweepReport report{.model = model.name,
                     .columns = telling_options(runs, runs[0],
                                                {"device", "precision", "optimizer", "optimizer_impl",
                                                 "checkpoint", "accumulate", "sequence", "batch"}),
                     .differing = telling_options(runs, runs[0], {}),
                     .rows = std::move(sweeping.rows()),
                     .notes = {}};
  const std::set<std::string> once(sweeping.notes().begin(), sweeping.notes().end());
  for (const std::string& note : once)
    if (!note.empty()) report.notes.push_back(note);
  return report;
}

}  // namespace metaprof
