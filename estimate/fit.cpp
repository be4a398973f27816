#include "estimate/fit.h"

#include <set>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/parallel.h"

namespace metaprof {
namespace {

constexpr int kLargest = 1 << 20;

class Search {
 public:
  Search(const Model& model, const RunOptions& run, const FitOptions& options, WorkspacePlanners& planners)
      : model_(model), run_(run), options_(options), planners_(planners), platform_(device_of(run)) {
    row_.memory = {
        static_cast<int64_t>(static_cast<double>(platform_.hardware.memory.count) * (1 - options.margin))};
  }

  FitRow find() {
    row_.options = shown_options(run_);
    if (!fits(1)) {
      const Phases needed = replay_trace(trace_, run_, platform_, unlimited_memory());
      row_.allocated = {needed.peak.allocated_bytes.peak};
      row_.reserved = {needed.peak.reserved_bytes.peak};
      return row_;
    }
    int most = 1;  // fits
    while (most < kLargest && fits(2 * most)) most *= 2;
    row_.unbounded = most == kLargest;
    for (int step = most / 2; step > 0 && !row_.unbounded; step /= 2)
      if (fits(most + step)) most += step;
    row_.largest = most;
    return row_;
  }

  /// Of the last run.
  const WorkspaceSources& workspaces() const { return workspaces_; }

 private:
  bool fits(int size) {
    (options_.dimension == "batch" ? run_.batch : run_.sequence) = size;
    ++row_.runs;
    trace_ = run_model(with_inputs(model_, run_), run_, platform_, planners_, workspaces_);
    const Phases phases = replay_trace(trace_, run_, platform_, row_.memory);
    if (phases.out_of_memory || phases.peak.reserved_bytes.peak > row_.memory.count) return false;
    row_.allocated = {phases.peak.allocated_bytes.peak};
    row_.reserved = {phases.peak.reserved_bytes.peak};
    return true;
  }

  const Model& model_;
  RunOptions run_;
  const FitOptions& options_;
  WorkspacePlanners& planners_;
  const Platform platform_;
  Trace trace_;
  WorkspaceSources workspaces_;
  FitRow row_;
};

}  // namespace

void check_fit_options(const FitOptions& options) {
  if (options.dimension != "batch" && options.dimension != "sequence")
    fail("--find: '{}' is no dimension of the inputs; there are batch, sequence", options.dimension);
  if (options.dimension == "batch" && options.grid.has("batch"))
    fail("--batch: is what fit looks for; --find sequence keeps it");
  if (options.dimension == "sequence" && options.grid.has("sequence"))
    fail("--sequence: is what --find sequence looks for");
}

FitReport fit(const Model& model, const FitOptions& options) {
  check_fit_options(options);
  const std::vector<RunOptions> runs = combinations(options.grid);
  FitReport report{.model = model.name,
                   .dimension = options.dimension,
                   .margin = options.margin,
                   .columns = telling_options(runs, RunOptions(), {"device", "precision", "optimizer"}),
                   .rows = std::vector<FitRow>(runs.size()),
                   .notes = {}};
  WorkspacePlanners planners;
  std::vector<std::string> notes(runs.size());
  in_parallel(runs.size(), [&](size_t i) {
    Search search(model, runs[i], options, planners);
    report.rows[i] = search.find();
    notes[i] = workspace_note(search.workspaces());
  });
  const std::set<std::string> once(notes.begin(), notes.end());
  for (const std::string& note : once)
    if (!note.empty()) report.notes.push_back(note);
  return report;
}

}  // namespace metaprof
