// Writes that can only be wrong are refused before anything runs: to an expanded tensor, several elements of which lie
// in one place.

#include "core/error.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {

void check_in_place(Graph& graph, const PassContext&) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  for (const Node* node : nodes) {
    if (!node->is(Kind::call) || !node->op->in_place || !node->op->writes) continue;
    const Node* maker = node->input()->node;
    if (maker->name == "aten::expand" || maker->name == "aten::expand_as")
      fail(
          "{} writes to the result of {}, several elements of which lie in one place: write to a copy "
          "(clone)",
          node->name, maker->name);
  }
}

}  // namespace metaprof::ir
