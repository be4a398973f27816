#pragma once
// What CUDA graphs would cost a model's training step.

#include "estimate/estimate.h"
#include "estimate/results/cudagraphs.h"

namespace metaprof {

struct CudagraphsOptions {
  RunOptions run;
  int warmup = 3;  ///< steps before the whole step is captured
  bool whole_network = true, tree = true, graphed_callables = false;  ///< what is asked
  int tree_steps = 4;
  CapturePolicy policy;
};

/// The optimizer does not read the device's data in a step.
bool can_capture_whole_step(const RunOptions& options);

/// Errors: as estimate; the model is a trace; the device has no CUDA; the mode is not training; gradient scaling, or the
/// optimizer of a whole step that is captured, reads the device's data in a step, which cannot be captured.
CudagraphsReport cudagraphs(const Model& model, const CudagraphsOptions& options);

}  // namespace metaprof
