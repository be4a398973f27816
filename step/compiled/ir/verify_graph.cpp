#include "step/compiled/ir/verify_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "step/compiled/ir/numbers.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {
namespace {

class Verifier {
 public:
  void verify(const Graph& graph) {
    home_ = &graph;
    verify_block(graph.block());
  }

 private:
  void verify_block(const Block& block) {
    std::vector<const Value*> made;
    make(*block.parameters, made);
    int64_t position = block.parameters->position;
    for (const Node* node = block.first();; node = node->next) {
      if (node->block != &block || node->position <= position || node->next->previous != node)
        wrong(*node, "stands in another block or place than it says");
      position = node->position;
      verify_node(*node);
      make(*node, made);
      if (block.is_end(node)) break;
    }
    for (const Value* value : made) known_.erase(value);
  }

  void make(const Node& node, std::vector<const Value*>& made) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* value = node.output(i);
      if (value->node != &node || value->index != i) wrong(node, "an output is another node's");
      for (const Use& use : value->uses)
        if (use.index >= use.user->inputs.size() || use.user->inputs[use.index] != value)
          wrong(node, "an output has a use that does not take it");
      known_.insert(value);
      made.push_back(value);
    }
  }

  void verify_node(const Node& node) {
    if (node.home != home_) wrong(node, "belongs to another graph");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* input = node.inputs[i];
      if (!known_.contains(input)) wrong(node, fmt::format("input {} is not made before it", i));
      const bool used = std::ranges::any_of(
          input->uses, [&](const Use& use) { return use.user == &node && use.index == i; });
      if (!used) wrong(node, fmt::format("input {} does not know its use", i));
    }
    verify_kind(node);
    for (const auto& block : node.blocks) verify_block(*block);
    for (const auto& [key, attribute] : node.attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) Verifier().verify(**graph);
  }

  void verify_kind(const Node& node) const {
    switch (node.kind) {
      case Kind::call: return verify_call(node);
      case Kind::number:
        return expect(node, node.inputs.size() == number_op(node.name)->arguments, "arguments");
      case Kind::constant: return expect(node, node.has("value") && node.outputs.size() == 1, "a value");
      case Kind::branch: return verify_branch(node);
      case Kind::loop: return verify_loop(node);
      case Kind::grad_of:
        return expect(node,
                      node.blocks.size() == 1 && node.blocks[0]->outputs().size() == node.outputs.size(),
                      "one block with its outputs");
      case Kind::differentiable_graph: return verify_differentiable(node);
      case Kind::fusion_group:
        return expect(
            node, fits(node, "graph") && node.graph("graph")->block().outputs().size() == node.outputs.size(),
            "a graph with its inputs and outputs");
      case Kind::constant_chunk:
        return expect(node, node.inputs.size() == 3 && node.op, "a tensor, chunks and a dimension");
      case Kind::autograd_add: return expect(node, node.inputs.size() == 2, "two inputs");
      default: return;
    }
  }

  void verify_call(const Node& node) const {
    if (!node.op || node.inputs.size() != node.op->schema.arguments.size())
      wrong(node, "has not as many arguments as its schema");
    if (node.outputs.size() != node.op->schema.returns.size())
      wrong(node, "has not as many results as its schema");
  }

  void verify_branch(const Node& node) const {
    expect(node, node.inputs.size() == 1 && node.blocks.size() == 2, "a condition and two blocks");
    for (const auto& block : node.blocks)
      expect(node, block->inputs().empty() && block->outputs().size() == node.outputs.size(),
             "blocks without inputs and with its outputs");
  }

  void verify_loop(const Node& node) const {
    expect(node, node.inputs.size() >= 2 && node.blocks.size() == 1, "trips, a condition and one block");
    const size_t carried = node.inputs.size() - 2;
    const Block& block = *node.blocks[0];
    expect(node,
           node.outputs.size() == carried && block.inputs().size() == carried + 1 &&
               block.outputs().size() == carried + 1,
           "a block that takes the trip and what is carried, and gives a condition and what is carried");
  }

  static bool fits(const Node& node, const std::string& key) {
    return node.has(key) && node.graph(key)->block().inputs().size() == node.inputs.size();
  }

  void verify_differentiable(const Node& node) const {
    expect(node, fits(node, "graph"), "a graph with its inputs");
    const size_t outputs = node.graph("graph")->block().outputs().size();
    if (!node.has("gradient"))
      return expect(node, outputs == node.outputs.size(), "a graph with its outputs");
    const Block& gradient = node.graph("gradient")->block();
    expect(node, node.value("real_outputs").integer() == static_cast<int64_t>(node.outputs.size()),
           "real outputs");
    const auto count = [&](const char* key) { return node.value(key).integers().size(); };
    expect(
        node,
        gradient.inputs().size() == count("incoming") + count("captured_inputs") + count("captured_outputs"),
        "a gradient that takes what comes in and what is captured");
    expect(node, gradient.outputs().size() == count("outgoing"),
           "a gradient for each of its outgoing inputs");
  }

  static void expect(const Node& node, bool holds, std::string_view what) {
    if (!holds) wrong(node, fmt::format("needs {}", what));
  }
  [[noreturn]] static void wrong(const Node& node, std::string_view what) { fail("{}: {}", node.name, what); }

  const Graph* home_ = nullptr;
  std::unordered_set<const Value*> known_;
};

}  // namespace

void verify(const Graph& graph) { Verifier().verify(graph); }

}  // namespace metaprof::ir
