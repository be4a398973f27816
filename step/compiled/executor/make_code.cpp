#include "step/compiled/executor/make_code.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "meta/session/limits.h"
#include "step/compiled/executor/differentiable_code.h"
#include "step/compiled/executor/fused_code.h"

namespace metaprof::ir {

namespace {

class CodeMaker {
 public:
  explicit CodeMaker(const MakeRunner& make_runner) : make_runner_(make_runner) {}

  Code make(const std::shared_ptr<const Graph>& graph) {
    code_.graph = graph;
    code_.body = body(graph->block());
    return std::move(code_);
  }

 private:
  // The node of the value's own block in which a use stands.
  static const Node* user_in(const Block* block, const Node* user) {
    while (user->block != block) user = user->block->owner;
    return user;
  }

  static const Node* last_user(const Value& value) {
    const Node* last = nullptr;
    for (const Use& use : value.uses) {
      const Node* user = user_in(value.node->block, use.user);
      if (!last || last->is_before(user)) last = user;
    }
    return last;
  }

  int32_t place_of(const Value& value) {
    const auto [found, is_new] = places_.try_emplace(&value, static_cast<int32_t>(code_.places));
    if (is_new) ++code_.places;
    return found->second;
  }

  Body body(const Block& block) {
    Body made;
    for (const auto& input : block.inputs()) made.inputs.push_back(input->is_used() ? place_of(*input) : -1);
    std::vector<Instruction> instructions;
    for (const Node* node = block.first(); !block.is_end(node); node = node->next) {
      if (node->is(Kind::constant)) {
        places_.emplace(node->output(), -1 - static_cast<int32_t>(code_.constants.size()));
        code_.constants.push_back(node->value("value"));
      } else {
        instructions.push_back(instruction(*node));
      }
    }
    made.outputs = operands(*block.results);
    // Inner blocks have put theirs before these.
    made.begin = code_.instructions.size();
    std::ranges::move(instructions, std::back_inserter(code_.instructions));
    made.end = code_.instructions.size();
    return made;
  }

  // What is used last by a node is given away with the last of its inputs that is the value.
  std::vector<Operand> operands(const Node& node) {
    std::vector<Operand> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = *node.inputs[i];
      Operand operand{.place = place_of(value), .is_last = false};
      if (operand.place >= 0 && value.node->block == node.block && last_user(value) == &node)
        operand.is_last = std::ranges::find(node.inputs.begin() + static_cast<ptrdiff_t>(i) + 1,
                                            node.inputs.end(), &value) == node.inputs.end();
      // An inner block uses it, too: it goes after the node.
      if (operand.is_last && !node.blocks.empty() && used_inside(value, node)) operand.is_last = false;
      operands.push_back(operand);
    }
    return operands;
  }

  static bool used_inside(const Value& value, const Node& node) {
    return std::ranges::any_of(value.uses, [&](const Use& use) { return use.user->block != node.block; });
  }

  Instruction instruction(const Node& node) {
    Instruction made;
    made.kind = node.kind;
    made.node = &node;
    made.op = node.op;
    if (node.op && node.op->schema.arguments.size() > kMostArguments)
      fail("{} takes {} arguments; at most {} are supported", node.name, node.op->schema.arguments.size(),
           kMostArguments);
    if (node.is(Kind::number)) made.number = number_op(node.name);
    made.inputs = operands(node);
    for (const auto& block : node.blocks) made.bodies.push_back(body(*block));
    for (const auto& output : node.outputs)
      made.outputs.push_back(output->is_used() ? place_of(*output) : -1);
    if (!node.blocks.empty()) made.frees = last_inside(node);
    // A call without a path stands in the root module; what passes have added belongs to what stands before it.
    if (node.op || !node.scope.empty()) made.scope = scope(node.scope);
    if (node.is(Kind::differentiable_graph) || node.is(Kind::fusion_group)) made.inner = inner_code(node);
    return made;
  }

  std::shared_ptr<const NodeCode> inner_code(const Node& node) {
    Code inner = make_code(node.graph("graph"), make_runner_);
    if (node.is(Kind::fusion_group)) return std::make_shared<FusedCode>(std::move(inner));
    return std::make_shared<DifferentiableCode>(
        node, std::move(inner), node.has("gradient") ? make_runner_(node.graph("gradient")) : nullptr);
  }

  // Values of the node's own block that are used for the last time inside its blocks.
  std::vector<int32_t> last_inside(const Node& node) {
    std::vector<int32_t> places;
    std::vector<Node*> inner;
    for (const auto& block : node.blocks) {
      collect_nodes(*block, inner);
      inner.push_back(block->results.get());
    }
    const auto add = [&](const Value* value) {
      if (value->node->block != node.block || value->node->is(Kind::constant) || last_user(*value) != &node)
        return;
      const int32_t place = place_of(*value);
      if (std::ranges::find(places, place) == places.end()) places.push_back(place);
    };
    for (const Node* one : inner) {
      for (const Value* value : one->inputs) add(value);
      for (const auto& block : one->blocks)
        for (const Value* value : block->outputs()) add(value);
    }
    return places;
  }

  int32_t scope(const std::string& path) {
    const auto found = std::ranges::find(code_.scopes, path);
    if (found != code_.scopes.end()) return static_cast<int32_t>(found - code_.scopes.begin());
    code_.scopes.push_back(path);
    return static_cast<int32_t>(code_.scopes.size()) - 1;
  }

  Code code_;
  const MakeRunner& make_runner_;
  std::unordered_map<const Value*, int32_t> places_;
};

}  // namespace

Code make_code(const std::shared_ptr<const Graph>& graph, const MakeRunner& make_runner) {
  return CodeMaker(make_runner).make(graph);
}

}  // namespace metaprof::ir
