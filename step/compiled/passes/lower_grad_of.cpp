// A GradOf becomes an If: its block runs if any gradient that comes in is defined, else its results are undefined.

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

void lower(Block& block) {
  Graph& graph = block.graph;
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) lower(*inner);
    if (!node->is(Kind::grad_of)) continue;
    Node* any = graph.create(Kind::autograd_any_defined, node->inputs);
    any->move_before(node);
    Node* branch = graph.create(Kind::branch, {any->add_output(Type::Kind::boolean)});
    branch->scope = node->scope;
    branch->move_before(node);
    ValueMap map;
    map_outside(*node->blocks[0], map);
    Block* defined = branch->add_block();
    for (Value* output : insert_copy(*node->blocks[0], defined->results.get(), map))
      defined->results->add_input(output);
    Block* undefined = branch->add_block();
    Node* zero = graph.create(Kind::autograd_zero);
    undefined->append(zero);
    TensorDetail nothing;
    nothing.defined = false;
    zero->add_output(Type(nothing));
    for (const auto& output : node->outputs) {
      undefined->results->add_input(zero->output());
      output->replace_with(branch->add_output(output->type, output->name));
    }
    node->destroy();
  }
}

}  // namespace

void lower_grad_of(Graph& graph, const PassContext&) { lower(graph.block()); }

}  // namespace metaprof::ir
