#pragma once
// What holds for every graph of this folder. Passes may rely on it and must leave it so: it is checked after each.

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// Errors, each with the node: a value is used before it is made, or outside its block; uses and inputs disagree;
/// a call has not as many arguments as its schema; an If or a Loop whose blocks do not fit; a differentiable graph whose
/// gradient does not fit it. What kinds of values a call takes the dispatcher checks (meta/session/check_arguments.h).
void verify(const Graph& graph);

}  // namespace metaprof::ir
