#pragma once
// The signature of a .pt2 program: what each input and output of the graph is.

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// Fills Program::inputs and Program::outputs from graph_module.signature; Program::graph has been read.
void read_signature(Json signature, Pt2Context& context);

/// Fills Program::module_types with the paths of modules that no call mentions; their types are not in the
/// file.
void read_module_paths(Json module_call_graph, Program& program);

/// The first parameter's name in the graph, else the first tensor input's, as written in the text; empty if
/// there is neither. The device of the export is read from it.
std::string_view find_typical_input(Json signature);

}  // namespace metaprof
