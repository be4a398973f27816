#pragma once
// Runs of one step with different things computed again, each as the few figures that planners compare.

#include <mutex>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "planner/plan_series.h"

namespace metaprof {

struct StepFigures {
  Bytes allocated, reserved;  ///< peaks, without a limit
  Bytes after_setup;          ///< allocated before the first step: parameters, buffers, inputs
  Bytes after_forward;        ///< allocated when the first forward is over
  Flops flops;                ///< of a step, as the framework counts, what is computed again included
  double seconds = 0;         ///< of a step on an ideal device
  RecomputeCost again;        ///< what of it is computed again
};

/// Several threads may use one object.
class StepRunner {
 public:
  /// Errors: as with_inputs and device_of.
  StepRunner(const Model& model, const RunOptions& options);

  const Program& program() const { return program_; }
  /// Of a step with these patterns as --checkpoint. Errors: as run_steps.
  StepFigures run(const std::vector<std::string>& checkpoint);
  /// How many steps were run.
  int runs() const;
  /// What a reader should know of workspaces, or nothing.
  std::string note() const;

 private:
  StepFigures figures_of(const Trace& trace) const;

  const Program program_;
  const RunOptions options_;
  const Platform platform_;
  WorkspacePlanners planners_;
  mutable std::mutex mutex_;  // of what follows
  int runs_ = 0;
  WorkspaceSources workspaces_;
};

/// The patterns as one value of --checkpoint.
std::string checkpoint_option(const std::vector<std::string>& patterns);

}  // namespace metaprof
