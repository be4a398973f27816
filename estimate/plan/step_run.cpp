#include "estimate/plan/step_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "estimate/model_run.h"
#include "estimate/plan/bus.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/rates.h"
#include "estimate/replay.h"

namespace metaprof {

StepRunner::StepRunner(const Model& model, const RunOptions& options)
    : program_(with_inputs(model, options)),
      options_(as_captured(options, model.program)),
      platform_(platform_of(options_, model.program)) {}

Trace StepRunner::trace_of(const std::vector<std::string>& checkpoint, Extent extent) {
  RunOptions options = options_;
  options.step.checkpoint = checkpoint_option(checkpoint);
  if (program_.captured) extent = Extent::all;  // its steps are its own
  if (extent == Extent::two_steps) options.step.steps = std::min(options.step.steps, 2);
  if (extent == Extent::first_backward) {
    options.step.steps = options.step.accumulate = 1;
    options.step.optimizer = "none";
  }
  WorkspaceSources workspaces;
  Trace trace = run_model(program_, options, platform_, planners_, workspaces);
  const std::lock_guard lock(mutex_);
  ++runs_;
  workspaces_ = workspaces;
  return trace;
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
  const Counts counts = count(trace, rates_of(platform_));
  const ByPhase<Flops>& flops = counts.total.counted;
  StepFigures figures{.allocated = {phases.peak.allocated_bytes.peak},
                      .reserved = {phases.peak.reserved_bytes.peak},
                      .after_setup = {},
                      .after_forward = {},
                      .elsewhere = {},
                      .flops = flops.total(),
                      .seconds = counts.roofline.total(),
                      .over_bus = {},
                      .again = {flops.recompute.count, counts.roofline.recompute}};
  figures.over_bus = saved_over_bus(trace);
  if (const double rate = bus_bandwidth(platform_.hardware); rate > 0)
    figures.again.seconds += static_cast<double>(figures.over_bus.count) / rate;
  bool is_first = true;
  for (const PhaseRow& row : phases.rows) {
    const Phase phase = row.part.phase;
    const auto& allocated = row.numbers.allocated_bytes;
    if (phase == Phase::setup) figures.after_setup = {allocated.current};
    if (phase == Phase::forward && std::exchange(is_first, false))
      figures.after_forward = {allocated.current};
    if (phase == Phase::forward) continue;
    const int64_t fixed = phase == Phase::backward ? allocated.current : allocated.peak;
    figures.elsewhere = std::max(figures.elsewhere, Bytes{fixed});
  }
  return figures;
}

std::string checkpoint_option(const std::vector<std::string>& patterns) {
  return fmt::format("{}", fmt::join(patterns, " "));
}

}  // namespace metaprof
