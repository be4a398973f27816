// Differentiable graphs that are too small to be worth a node of their own are put back, without what was added for
// their gradient.

#include "step/compiled/passes/differentiable_operators.h"
#include "step/compiled/passes/pass.h"
#include "step/compiled/passes/subgraphs.h"

namespace metaprof::ir {
namespace {

// As the framework counts (inline_autodiff_subgraphs.cpp, 2.11): all nodes, constants and what derivatives add
// among them.
int64_t size_of(const Graph& graph) {
  int64_t size = 0;
  for (const Node* node : graph.nodes()) {
    if (node->is(Kind::fusion_group))
      size += size_of(*node->graph("graph"));
    else if (!node->is(Kind::context))
      size += 1 + added_nodes(*node);
  }
  return size;
}

// A recorded call becomes a plain one, which eager autograd records.
void forget_recording(Node* node) {
  Node* call = node->owner().create_call(*node->op, node->inputs);
  call->move_before(node);
  call->scope = node->scope;
  for (size_t i = 0; i < call->outputs.size(); ++i) {
    call->output(i)->type = node->output(i)->type;
    call->output(i)->name = node->output(i)->name;
    node->output(i)->replace_with(call->output(i));
  }
  node->destroy();
}

void inline_small(Block& block, int64_t threshold) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) inline_small(*inner, threshold);
    if (!node->is(Kind::differentiable_graph) || size_of(*node->graph("graph")) >= threshold) continue;
    for (Node* copy : inline_group(node)) {
      if (copy->is(Kind::fusion_group))
        inline_group(copy);  // which destroys it
      else if (copy->is(Kind::recorded))
        forget_recording(copy);
    }
  }
}

}  // namespace

void inline_differentiable_graphs(Graph& graph, const PassContext& context) {
  inline_small(graph.block(), context.inline_threshold);
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
