// A product with a sum in it becomes a product and a sum where the sum can run in one kernel with all that takes it.

#include <algorithm>

#include "step/compiled/passes/elementwise.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

bool is_one(const Node& node, size_t i) {
  return node.has_constant(i) && node.constant(i).is_number() && node.constant(i).real() == 1;
}

bool can_fuse_sum(const Node& node) {
  return node.output()->is_used() && std::ranges::all_of(node.output()->uses, [&](const Use& use) {
           return use.user->block == node.block && (is_elementwise(*use.user) || use.user->is(Kind::context));
         });
}

void take_apart(Node* node, const PassContext& context) {
  Graph& graph = node->owner();
  Node* product = graph.create_call(*context.registry.find("aten::mm"), {node->input(1), node->input(2)});
  product->move_before(node);
  product->scope = node->scope;
  product->output()->type = node->output()->type;
  Node* one = graph.create_constant(Constant(1));
  one->move_before(node);
  Node* sum = graph.create_call(*context.registry.find("aten::add.Tensor"),
                                {product->output(), node->input(0), one->output()});
  sum->move_before(node);
  sum->scope = node->scope;
  sum->output()->type = node->output()->type;
  sum->output()->name = node->output()->name;
  node->output()->replace_with(sum->output());
  node->destroy();
}

}  // namespace

void decompose(Graph& graph, const PassContext& context) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  for (Node* node : nodes)
    if (node->is(Kind::call) && node->name == "aten::addmm" && is_one(*node, 3) && is_one(*node, 4) &&
        can_fuse_sum(*node))
      take_apart(node, context);
}

}  // namespace metaprof::ir
