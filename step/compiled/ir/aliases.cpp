#include "step/compiled/ir/aliases.h"

#include <algorithm>

namespace metaprof::ir {
namespace {

bool holds_tensors(const Value* value) {
  return value->type.is_tensor() || value->type.is_tensors() || value->type.kind == Type::Kind::any;
}

}  // namespace

Aliases::Aliases(const Graph& graph) {
  add(graph.block());
  for (const Value* value : writes_) write(value);
}

const Value* Aliases::root(const Value* value) const {
  const auto found = parents_.find(value);
  if (found == parents_.end() || found->second == value) return value;
  return found->second = root(found->second);
}

void Aliases::unite(const Value* a, const Value* b) {
  if (holds_tensors(a) && holds_tensors(b)) parents_[root(a)] = root(b);
}

void Aliases::add(const Block& block) {
  for (const Node* node = block.first(); !block.is_end(node); node = node->next) add(*node);
}

void Aliases::add(const Node& node) {
  for (const auto& block : node.blocks) add(*block);
  switch (node.kind) {
    case Kind::call: return add_call(node);
    case Kind::list_construct:
    case Kind::list_unpack:
    case Kind::constant_chunk:
    case Kind::broadcasting_chunk:
    case Kind::autograd_add:
    case Kind::number:  // an element of a list
      for (const Value* input : node.inputs)
        for (const auto& output : node.outputs) unite(input, output.get());
      return;
    case Kind::branch:
    case Kind::grad_of:
      for (const auto& block : node.blocks)
        for (size_t i = 0; i < node.outputs.size(); ++i) unite(block->output(i), node.output(i));
      return;
    case Kind::loop:
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        unite(node.input(i + 2), node.output(i));
        unite(node.blocks[0]->input(i + 1), node.output(i));
        unite(node.blocks[0]->output(i + 1), node.output(i));
      }
      return;
    default: return;
  }
}

// What the schema says: "(a)" of an argument and a result.
void Aliases::add_call(const Node& node) {
  const Schema& schema = node.op->schema;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    if (argument.written) writes_.push_back(node.input(i));
    if (!argument.alias && !argument.written) continue;
    for (size_t r = 0; r < schema.returns.size(); ++r)
      if (schema.returns[r].alias_set == argument.alias_set || node.op->in_place)
        unite(node.input(i), node.output(r));
  }
}

bool Aliases::touches_written(const Node& node) const {
  if (written_.empty()) return false;
  const auto written = [this](const Value* value) { return is_written(value); };
  if (std::ranges::any_of(node.inputs, written)) return true;
  for (const auto& output : node.outputs)
    if (is_written(output.get())) return true;
  std::vector<Node*> inner;
  for (const auto& block : node.blocks) collect_nodes(*block, inner);
  return std::ranges::any_of(inner,
                             [&](const Node* one) { return std::ranges::any_of(one->inputs, written); });
}

bool has_effects(const Node& node) {
  if (node.op && node.is(Kind::call) && node.op->writes) return true;
  return std::ranges::any_of(node.blocks, [](const auto& block) {
    std::vector<Node*> inner;
    collect_nodes(*block, inner);
    return std::ranges::any_of(inner, [](const Node* one) { return has_effects(*one); });
  });
}

}  // namespace metaprof::ir
