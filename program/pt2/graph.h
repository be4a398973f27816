#pragma once
// The graph of a .pt2 program: values, calls, arguments, sub-graphs.

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// Reads graph_module.graph. Every value is defined once and before its use, tensors have facts; sizes that
/// are symbolic are not yet evaluated. Errors say where.
Graph read_graph(Json graph, Pt2Context& context);

}  // namespace metaprof
