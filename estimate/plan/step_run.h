#pragma once
// Runs of one step with different things computed again, each as the few figures that planners compare.

#include <mutex>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "estimate/plan/strategies/plan_series.h"
#include "estimate/prepare/rates.h"

namespace metaprof {

struct StepFigures {
  Bytes allocated, reserved;  ///< peaks, without a limit
  Bytes after_setup;          ///< allocated before the first step: parameters, buffers, inputs
  Bytes after_forward;        ///< allocated when the first forward is over
  Bytes elsewhere;            ///< the peak of what is neither forward nor backward: optimizer, zero_grad
  Flops flops;                ///< of a step, as the framework counts, what is computed again included
  double seconds = 0;         ///< of a step on an ideal device
  Bytes over_bus;             ///< of a step, to and from the host, for what is saved there
  RecomputeCost again;        ///< what of it is computed again, and the time of `over_bus`
};

/// Several threads may use one object.
class StepRunner {
 public:
  /// Errors: as with_inputs and device_of.
  StepRunner(const Model& model, const RunOptions& options);

  const Program& program() const { return program_; }
  /// How much of the steps is run.
  enum class Extent : uint8_t {
    first_backward,  ///< the first forward and backward: what is kept, and what is computed again
    two_steps,       ///< the first step, and one with the optimizer's states: as a rule the peak of all
    all
  };
  /// Of steps with these words as --checkpoint. Errors: as run_steps.
  StepFigures run(const std::vector<std::string>& checkpoint, Extent extent = Extent::all) {
    return figures_of(trace_of(checkpoint, extent));
  }
  Trace trace_of(const std::vector<std::string>& checkpoint, Extent extent);
  StepFigures figures_of(const Trace& trace) const;
  Rates rates() const { return rates_of(platform_); }
  const Hardware& hardware() const { return platform_.hardware; }
  /// How many steps were run.
  int runs() const;
  /// What a reader should know of workspaces, or nothing.
  std::string note() const;

 private:
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
