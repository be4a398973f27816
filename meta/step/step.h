#pragma once
// A training step of a Program on a described device: what is run, and the Trace that comes of it.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meta/platform/planned_workspaces.h"
#include "meta/platform/profile.h"
#include "meta/program/program.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// The words are those of recorded configurations. Defaults are the framework's.
struct StepOptions {
  std::string precision = "fp32";          ///< fp32, bf16, fp16, amp-bf16, amp-fp16
  std::string optimizer = "adamw";         ///< none, sgd, sgd-momentum, …, adamw
  std::string optimizer_impl = "default";  ///< default, foreach, for-loop, fused
  int steps = 3;
  int accumulate = 1;  ///< micro-batches per step
  std::optional<double> clip_norm, clip_value;
  bool zero_grad_to_none = true;
  bool channels_last = false;
  std::string checkpoint;  ///< shell wildcards within the segments of a module path; empty: none
  bool checkpoint_reentrant = false;
  std::string mode = "train";  ///< train, eval, no-grad, inference
  bool strict = false;         ///< an unknown operator is an error
  std::map<std::string, std::string>
      environment;  ///< of the process: CUBLAS_WORKSPACE_CONFIG, CUBLASLT_WORKSPACE_SIZE
  PlannedWorkspaces* workspaces = nullptr;  ///< what libraries plan for one call; null: nothing
};

/// Runs the step plan. Errors: bad option words; an operator's arguments do not fit (names operator and
/// module); no loss in a mode that needs one.
Trace run_steps(const Program& program, const DeviceProfile& profile, const StepOptions& options);

/// The words that `--optimizer` and `--precision` take so far.
std::vector<std::string> optimizer_names();
std::vector<std::string> precision_names();

}  // namespace metaprof
