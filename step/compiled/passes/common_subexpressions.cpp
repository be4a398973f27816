// Of two nodes that do the same to the same values, the second goes. Not those that draw random numbers or touch
// memory that is written.

#include <algorithm>
#include <unordered_map>

#include "program/text/constant_text.h"
#include "step/compiled/ir/aliases.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// What makes nodes equal, as text: name, inputs, attributes.
std::string key_of(const Node& node) {
  std::string key = node.name;
  const auto append = [&key](const void* address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const Value* input : node.inputs) append(input);
  for (const auto& [name, attribute] : node.attributes) {
    key += name + "=";
    if (const auto* constant = std::get_if<Constant>(&attribute)) {
      key += std::to_string(int(constant->kind())) + constant_text(*constant) + ",";
    } else {
      append(std::get<std::shared_ptr<Graph>>(attribute).get());
    }
  }
  return key + std::to_string(node.outputs.size());
}

bool may_merge(const Node& node, const Aliases& aliases) {
  if (!node.blocks.empty() || has_effects(node) || aliases.touches_written(node)) return false;
  if (node.op && node.op->record.facts.random) return false;
  // A composite may draw inside, where nobody looks: dropout.
  if (node.op && node.op->record.meta.composite && node.op->schema.find(name_hash("train")) >= 0)
    return false;
  if (node.op && node.op->record.meta.composite && node.op->schema.find(name_hash("generator")) >= 0)
    return false;
  return !node.is(Kind::differentiable_graph);
}

// Two results of the graph stay two: who gets them may write to one.
bool may_be_result(const Node& node, const Aliases& aliases) {
  const auto& results = node.owner().block().outputs();
  return std::ranges::any_of(node.outputs, [&](const auto& output) {
    if (!output->type.is_tensor() && !output->type.is_tensors()) return false;
    return std::ranges::any_of(results, [&](const Value* result) {
      return (result->type.is_tensor() || result->type.is_tensors()) &&
             aliases.may_share(output.get(), result);
    });
  });
}

using Seen = std::unordered_map<std::string, Node*>;

void merge(Block& block, const Aliases& aliases, const std::vector<const Seen*>& outer) {
  Seen seen;
  std::vector<const Seen*> visible = outer;
  visible.push_back(&seen);
  for (Node* node : block.nodes()) {
    if (!may_merge(*node, aliases)) {
      for (const auto& inner : node->blocks) merge(*inner, aliases, visible);
      continue;
    }
    const std::string key = key_of(*node);
    Node* first = nullptr;
    for (const Seen* known : visible)
      if (const auto found = known->find(key); found != known->end()) first = found->second;
    if (!first) {
      seen.emplace(key, node);
      continue;
    }
    if (may_be_result(*node, aliases) && may_be_result(*first, aliases)) continue;
    for (size_t i = 0; i < node->outputs.size(); ++i) node->output(i)->replace_with(first->output(i));
    node->destroy();
  }
}

}  // namespace

void eliminate_common_subexpressions(Graph& graph, const PassContext&) {
  merge(graph.block(), Aliases(graph), {});
}

}  // namespace metaprof::ir
