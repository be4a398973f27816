// One way to write what can be written in several: a constant stands on the right of a comparison or of an operation
// whose sides may be exchanged, no If has a negated condition, and a list of chunks that is taken apart at once is no
// list.

#include <algorithm>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// The operation with its sides exchanged; empty: there is none.
std::string_view exchanged(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"aten::lt.int", "aten::gt.int"},   {"aten::gt.int", "aten::lt.int"},  {"aten::le.int", "aten::ge.int"},
      {"aten::ge.int", "aten::le.int"},   {"aten::eq.int", "aten::eq.int"},  {"aten::ne.int", "aten::ne.int"},
      {"aten::add.int", "aten::add.int"}, {"aten::mul.int", "aten::mul.int"}};
  for (const auto& [from, to] : kPairs)
    if (from == name) return to;
  return {};
}

void exchange_sides(Node& node) {
  const std::string_view name = exchanged(node.name);
  if (name.empty() || !node.has_constant(0) || node.has_constant(1)) return;
  Value *left = node.input(0), *right = node.input(1);
  node.set_input(0, right);
  node.set_input(1, left);
  node.name = std::string(name);
}

void drop_negation(Node& branch) {
  const Node* condition = branch.input()->node;
  if (condition->name != "aten::__not__") return;
  branch.set_input(0, condition->input());
  std::swap(branch.blocks[0], branch.blocks[1]);
}

void make_constant_chunk(Node* node) {
  if (node->name != "aten::chunk" || !node->has_constant(1) || !node->has_constant(2)) return;
  if (node->output()->uses.size() != 1) return;
  Node* unpack = node->output()->uses[0].user;
  if (!unpack->is(Kind::list_unpack) || unpack->block != node->block) return;
  Node* chunk = node->owner().create(Kind::constant_chunk, node->inputs);
  chunk->op = node->op;
  chunk->scope = node->scope;
  chunk->attributes["of"] = Constant(node->op->name);
  chunk->move_before(node);
  for (const auto& output : unpack->outputs)
    output->replace_with(chunk->add_output(output->type, output->name));
  unpack->destroy();
  node->destroy();
}

std::vector<Node*> nodes_of(const Graph& graph) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  return nodes;
}

}  // namespace

void canonicalise(Graph& graph, const PassContext&) {
  for (Node* node : nodes_of(graph)) {
    if (node->is(Kind::number)) exchange_sides(*node);
    if (node->is(Kind::branch)) drop_negation(*node);
  }
  std::vector<Node*> chunks = nodes_of(graph);
  std::erase_if(chunks, [](const Node* node) { return node->name != "aten::chunk"; });
  for (Node* chunk : chunks) make_constant_chunk(chunk);
}

}  // namespace metaprof::ir
