#pragma once
// Which operators are differentiated inside a graph, as the framework's graph executor does it.

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// The node may lie in a differentiable graph: the framework has a formula for it in its own language
/// (torch/csrc/jit/runtime/symbolic_script.cpp and autodiff.cpp, 2.11). No rule says for what it has one: for exp, but
/// not for square; for pooling, but not for convolution.
bool is_differentiable_in_graph(const Node& node);
/// It may, but the framework keeps it at the border: views as results of a differentiable graph would not be known
/// to be views (create_autodiff_subgraphs.cpp, 2.11).
bool is_view_outside(const Node& node);

}  // namespace metaprof::ir
