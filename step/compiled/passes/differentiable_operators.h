#pragma once
// Which operators are differentiated inside a graph, as the framework's graph executor does it.

#include <optional>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// The node may lie in a differentiable graph.
bool is_differentiable_in_graph(const Node& node);
/// It may, but the framework keeps it at the border: views as results of a differentiable graph would not be known
/// to be views (create_autodiff_subgraphs.cpp, 2.11).
bool is_view_outside(const Node& node);
/// Nodes that its derivative adds to the forward graph: sizes that the backward sums down to, and the like.
int64_t added_nodes(const Node& node);

}  // namespace metaprof::ir
