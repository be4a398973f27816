// Expansions that a frontend has written down for a broadcast go: the operator broadcasts by itself.

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {

void remove_expands(Graph& graph, const PassContext&) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  for (Node* node : nodes) {
    if (node->name != "aten::expand" || !node->has_constant(2) || !node->constant(2).boolean()) continue;
    node->output()->replace_with(node->input());
    node->destroy();
  }
}

}  // namespace metaprof::ir
