// Nodes whose outputs nobody takes go, unless they do something else. So do outputs of an If and values that a Loop
// carries for nobody.

#include "step/compiled/ir/aliases.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

void clean(Block& block);

// Outputs of an If or a GradOf.
void drop_outputs(Node& node) {
  for (size_t i = node.outputs.size(); i-- > 0;) {
    if (node.output(i)->is_used()) continue;
    for (const auto& block : node.blocks) block->results->remove_input(i);
    node.remove_output(i);
  }
}

// What is carried and is only handed on.
void drop_carried(Node& loop) {
  Block& body = *loop.blocks[0];
  for (size_t i = loop.outputs.size(); i-- > 0;) {
    Value* inside = body.input(i + 1);
    bool handed_on = !loop.output(i)->is_used();
    for (const Use& use : inside->uses) handed_on &= use.user == body.results.get() && use.index == i + 1;
    if (!handed_on) continue;
    body.results->remove_input(i + 1);
    body.parameters->remove_output(i + 1);
    loop.remove_input(i + 2);
    loop.remove_output(i);
  }
}

void clean(Node& node) {
  if (node.is(Kind::branch) || node.is(Kind::grad_of)) drop_outputs(node);
  if (node.is(Kind::loop)) drop_carried(node);
  for (const auto& block : node.blocks) clean(*block);
}

void clean(Block& block) {
  const std::vector<Node*> nodes = block.nodes();
  for (size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i]->is_unused() && !has_effects(*nodes[i])) {
      nodes[i]->destroy();
    } else {
      clean(*nodes[i]);
    }
  }
}

}  // namespace

void eliminate_dead_code(Graph& graph, const PassContext&) { clean(graph.block()); }

}  // namespace metaprof::ir
