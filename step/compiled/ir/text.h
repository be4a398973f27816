#pragma once
// A graph as text, and the text as a graph (docs/explanation/graph_executor.md):
//
//   graph(%x: Tensor(f32[*,*] cpu grad), %n: int) {
//     %y: Tensor = aten::relu(%x)
//     %z: Tensor = prim::Loop(%n, True, %y) { (%i: int, %s: Tensor)
//       %t: Tensor = aten::mul.Tensor(%s, %x)
//       -> (True, %t)
//     }
//     -> (%z)
//   }

#include <memory>
#include <string>
#include <string_view>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// The text of what was read is the text that was read, if that was printed. Arguments that a text leaves out
/// take the schema's defaults. Errors name the line: an unknown operator, a value that is made twice or not yet,
/// arguments that do not fit, and whatever else is no graph.
std::shared_ptr<Graph> parse_graph(std::string_view text, const Registry& registry);

std::string to_text(const Graph& graph);
/// One node, its blocks included; for messages.
std::string to_text(const Node& node);

}  // namespace metaprof::ir
