#include "estimate/sweep.h"

#include <set>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/parallel.h"

namespace metaprof {
namespace {

SweepRow run_one(const Model& model, const RunOptions& run, WorkspacePlanners& planners, std::string& note) {
  SweepRow row{.options = shown_options(run), .error = {}, .needed = {}};
  try {
    const ProfileReport report = estimate(model, run, planners).report;
    const AllocatorNumbers& peak = report.memory.phases.peak;
    row.fits = verdict_of(report).fits;
    row.parameter_bytes = report.memory.parameters.all.bytes.count;
    row.saved_bytes = report.memory.saved.bytes.count;
    row.allocated = peak.allocated_bytes.peak;
    row.requested = peak.requested_bytes.peak;
    row.reserved = peak.reserved_bytes.peak;
    const Verdict verdict = verdict_of(report);
    if (!verdict.at_least) row.needed = verdict.reserved.count;
    row.flops_forward = report.counts.total.counted.forward.count;
    row.flops_backward = (report.counts.total.counted.backward + report.counts.total.counted.recompute).count;
    row.flops_recompute = report.counts.total.counted.recompute.count;
    note = workspace_note(report.workspaces);
  } catch (const Error& error) {
    row.error = error.what();
  }
  return row;
}

}  // namespace

SweepReport sweep(const Model& model, const Grid& grid) {
  const std::vector<RunOptions> runs = combinations(grid);
  (void)with_inputs(model, runs[0]);  // inputs that the model does not have are no finding
  SweepReport report{.model = model.name,
                     .columns = telling_options(runs, runs[0],
                                                {"device", "precision", "optimizer", "optimizer_impl",
                                                 "checkpoint", "accumulate", "sequence", "batch"}),
                     .differing = telling_options(runs, runs[0], {}),
                     .rows = std::vector<SweepRow>(runs.size()),
                     .notes = {}};
  WorkspacePlanners planners;
  std::vector<std::string> notes(runs.size());
  in_parallel(runs.size(), [&](size_t i) { report.rows[i] = run_one(model, runs[i], planners, notes[i]); });
  const std::set<std::string> once(notes.begin(), notes.end());
  for (const std::string& note : once)
    if (!note.empty()) report.notes.push_back(note);
  return report;
}

}  // namespace metaprof
