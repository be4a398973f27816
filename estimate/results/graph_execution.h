#pragma once
// What compiling a model as a graph does, and what it would change.

#include <string>
#include <vector>

#include "estimate/results/execution.h"

namespace metaprof {

/// What a pass did to the plan's graph.
struct GraphPassRow {
  std::string pass;
  int phase = 0;                             ///< 1 to 5; 0: the last clean-up
  size_t nodes_before = 0, nodes_after = 0;  ///< constants left out
  double seconds = 0;
  std::string before, after;  ///< texts, if they were asked for
};

struct GraphPlanRow {
  std::string name;       ///< "plan 1", "plan 1, gradient 1, plan 1"
  std::string arguments;  ///< what it is for
  size_t nodes = 0;       ///< of the graph itself; differentiable graphs and fused kernels count as one
  double seconds = 0;     ///< that compiling took
};

struct GraphCounters {
  int64_t executors = 0, invocations = 0, hits = 0, misses = 0;
};

struct GraphExecutionReport {
  std::string model, device;
  std::vector<GraphPassRow> passes;  ///< of the plan that ran last
  std::vector<GraphPlanRow> plans;
  GraphCounters counters;
  ExecutionComparison comparison;
  std::string dot;          ///< the plan that ran last
  std::string explanation;  ///< graph, plans and those of gradients, as texts
};

}  // namespace metaprof
