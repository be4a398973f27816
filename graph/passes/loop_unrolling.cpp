// A Loop of a few trips, whose number is a constant and which nothing ends before, becomes its body that often.

#include "graph/passes/pass.h"
#include "graph/passes/subgraphs.h"

namespace metaprof::ir {
namespace {

// torch/csrc/jit/passes/loop_unrolling.cpp, 2.11: kMaxBodySize, and the trips that a constant loop may make.
constexpr size_t kMostNodes = 32;
constexpr int64_t kMostTrips = 8;

bool always_goes_on(const Value* condition) {
  return condition->node->is(Kind::constant) && condition->node->value("value").boolean();
}

bool is_small(const Node& loop) {
  if (!loop.has_constant(0) || loop.constant(0).integer() > kMostTrips) return false;
  if (!always_goes_on(loop.input(1)) || !always_goes_on(loop.blocks[0]->output(0))) return false;
  std::vector<Node*> nodes;
  collect_nodes(*loop.blocks[0], nodes);
  return nodes.size() <= kMostNodes;
}

void unroll(Node* loop) {
  Graph& graph = loop->owner();
  const Block& body = *loop->blocks[0];
  std::vector<Value*> carried(loop->inputs.begin() + 2, loop->inputs.end());
  std::vector<Node*> inner;
  collect_nodes(body, inner);
  inner.push_back(body.results.get());
  for (int64_t trip = 0; trip < loop->constant(0).integer(); ++trip) {
    ValueMap map;
    for (const Node* node : inner) {
      for (Value* input : node->inputs) map.try_emplace(input, input);
      for (const auto& block : node->blocks)
        for (Value* output : block->outputs()) map.try_emplace(output, output);
    }
    Node* number = graph.create_constant(Constant(trip));
    number->move_before(loop);
    map[body.input(0)] = number->output();
    for (size_t i = 0; i < carried.size(); ++i) map[body.input(i + 1)] = carried[i];
    const std::vector<Value*> outputs = insert_copy(body, loop, map);
    carried.assign(outputs.begin() + 1, outputs.end());
  }
  for (size_t i = 0; i < carried.size(); ++i) loop->output(i)->replace_with(carried[i]);
  loop->destroy();
}

void unroll(Block& block) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) unroll(*inner);
    if (node->is(Kind::loop) && is_small(*node)) unroll(node);
  }
}

}  // namespace

void unroll_loops(Graph& graph, const PassContext& context) {
  unroll(graph.block());
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
