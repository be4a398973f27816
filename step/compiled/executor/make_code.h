#pragma once
// Code from a graph.

#include <functional>

#include "step/compiled/executor/code.h"
#include "step/compiled/executor/graph_runner.h"

namespace metaprof::ir {

/// Makes what runs the gradient of a differentiable graph.
using MakeRunner = std::function<std::shared_ptr<GraphRunner>(const std::shared_ptr<Graph>& gradient)>;

/// The graph must stay as it is. Error: an operator takes more arguments than calls can have.
Code make_code(const std::shared_ptr<const Graph>& graph, const MakeRunner& make_runner);

}  // namespace metaprof::ir
