#pragma once
// What compiling a model as a graph does, and what it would change, as `metaprof graph` shows it.

#include <string>
#include <vector>

#include "estimate/results/graph_execution.h"

namespace metaprof {

/// The table of passes, plans, counters and the comparison.
std::string graph_execution_text(const GraphExecutionReport& report);

/// Graphs before and after the passes; of these only, or of all if there are none. A pass that changes nothing is one line.
std::string pass_texts(const GraphExecutionReport& report, const std::vector<std::string>& only);

/// `metaprof.graph` (reports/schema/graph.schema.json).
std::string graph_execution_json(const GraphExecutionReport& report);

}  // namespace metaprof
