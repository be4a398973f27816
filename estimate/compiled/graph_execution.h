#pragma once
// A model's training step, eager and compiled as a graph, side by side.

#include "estimate/compiled_model.h"
#include "estimate/estimate.h"
#include "estimate/results/graph_execution.h"

namespace metaprof {

struct GraphExecutionOptions {
  RunOptions run;
  CompiledModelOptions compile;
};

/// Errors: as estimate; what is not compiled (estimate/compiled_model.h); the model is a trace.
GraphExecutionReport graph_execution(const Model& model, const GraphExecutionOptions& options);

/// The other way of execution beside the one that was estimated. Errors: as estimate.
ExecutionFigures eager_figures(const Model& model, RunOptions options);

}  // namespace metaprof
