// Every constant stands once, at the beginning of the graph.

#include <map>

#include "program/text/constant_text.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {

void pool_constants(Graph& graph, const PassContext&) {
  std::map<std::pair<int, std::string>, Node*> pool;
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  Node* last = graph.block().parameters.get();
  for (Node* node : nodes) {
    if (!node->is(Kind::constant)) continue;
    const Constant& value = node->value("value");
    const auto [found, is_new] = pool.try_emplace({int(value.kind()), constant_text(value)}, node);
    if (is_new) {
      node->move_after(last);
      last = node;
    } else {
      node->output()->replace_with(found->second->output());
      node->destroy();
    }
  }
}

}  // namespace metaprof::ir
