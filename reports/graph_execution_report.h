#pragma once
// What compiling a model as a graph does, and what it would change, as `metaprof graph` shows it.

#include <string>
#include <vector>

#include "reports/execution_figures.h"

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

/// The table of passes, plans, counters and the comparison.
std::string graph_execution_text(const GraphExecutionReport& report);
/// Graphs before and after the passes; of these only, or of all if there are none. A pass that changes nothing is one line.
std::string pass_texts(const GraphExecutionReport& report, const std::vector<std::string>& only);
/// `metaprof.graph` (reports/schema/graph.schema.json).
std::string graph_execution_json(const GraphExecutionReport& report);

}  // namespace metaprof
