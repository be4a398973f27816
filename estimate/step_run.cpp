#include "estimate/step_run.h"

#include <fmt/ranges.h>

namespace metaprof {

StepRunner::StepRunner(const Model& model, const RunOptions& options)
    : program_(with_inputs(model, options)),
      options_(options),
      platform_(platform_of(options, model.program)) {}

StepFigures StepRunner::run(const std::vector<std::string>& checkpoint) {
  RunOptions options = options_;
  options.step.checkpoint = checkpoint_option(checkpoint);
  WorkspaceSources workspaces;
  const Trace trace = run_model(program_, options, platform_, planners_, workspaces);
  const StepFigures figures = figures_of(trace);
  const std::lock_guard lock(mutex_);
  ++runs_;
  workspaces_ = workspaces;
  return figures;
}

int StepRunner::runs() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

std::string StepRunner::note() const {
  const std::lock_guard lock(mutex_);
  return workspace_note(workspaces_);
}

StepFigures StepRunner::figures_of(const Trace& trace) const {
  const Phases phases = replay_trace(trace, options_, platform_, unlimited_memory());
  const Counts counts = count(trace, rates_of(platform_.hardware));
  const ByPhase<Flops>& flops = counts.total.counted;
  StepFigures figures{.allocated = {phases.peak.allocated_bytes.peak},
                      .reserved = {phases.peak.reserved_bytes.peak},
                      .after_setup = {},
                      .after_forward = {},
                      .flops = flops.forward + flops.backward + flops.recompute + flops.optimizer,
                      .seconds = counts.roofline.total(),
                      .again = {flops.recompute.count, counts.roofline.recompute}};
  for (const PhaseRow& row : phases.rows) {
    if (row.part.phase == Phase::setup) figures.after_setup = {row.numbers.allocated_bytes.current};
    if (row.part.phase != Phase::forward) continue;
    figures.after_forward = {row.numbers.allocated_bytes.current};
    break;
  }
  return figures;
}

std::string checkpoint_option(const std::vector<std::string>& patterns) {
  return fmt::format("{}", fmt::join(patterns, " "));
}

}  // namespace metaprof
