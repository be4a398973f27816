#pragma once
// A graph for Graphviz.

#include <string>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// A digraph in DOT: a box per node, an edge per use; blocks and graphs inside a node are clusters.
std::string to_dot(const Graph& graph);

}  // namespace metaprof::ir
