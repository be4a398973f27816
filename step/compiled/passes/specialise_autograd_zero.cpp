// Undefined gradients are known from what comes in: what would be computed from them alone goes, sums with them become
// the other summand. A sum of two that are there is a plain sum, which other passes may rewrite.

#include <algorithm>
#include <map>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

enum class State : uint8_t { unknown, zero, defined };

class Specialiser {
 public:
  Specialiser(Graph& graph, const Registry& registry) : graph_(graph), registry_(registry) {}

  void run() {
    const auto nodes = graph_.nodes();
    const bool is_gradient = std::ranges::any_of(nodes, [](const Node* node) {
      return node->is(Kind::autograd_any_defined) || node->is(Kind::autograd_add) || node->is(Kind::grad_of);
    });
    if (!is_gradient) return;
    for (const auto& input : graph_.block().inputs()) states_[input.get()] = state_of(input->type);
    for (Node* node : nodes) specialise(node);
  }

 private:
  static State state_of(const Type& type) {
    if (type.is_tensors()) return State::defined;
    if (!type.is_tensor() || !type.tensor.defined) return State::unknown;
    return *type.tensor.defined ? State::defined : State::zero;
  }

  void specialise(Node* node) {
    switch (node->kind) {
      case Kind::autograd_add: return specialise_add(node);
      case Kind::autograd_zero: states_[node->output()] = State::zero; return;
      case Kind::branch:
        if (node->input()->node->is(Kind::autograd_any_defined)) specialise_branch(node);
        return;
      default: return;
    }
  }

  void specialise_add(Node* node) {
    Value *a = node->input(0), *b = node->input(1);
    if (states_[a] == State::zero) return replace(node, b);
    if (states_[b] == State::zero) return replace(node, a);
    if (states_[a] != State::defined || states_[b] != State::defined) return;
    Node* one = graph_.create_constant(Constant(1));
    one->move_before(node);
    Node* sum = graph_.create_call(*registry_.find("aten::add.Tensor"), {a, b, one->output()});
    sum->scope = node->scope;
    sum->move_before(node);
    states_[sum->output()] = State::defined;
    replace(node, sum->output());
  }

  void replace(Node* node, Value* by) {
    node->output()->replace_with(by);
    node->destroy();
  }

  // A GradOf that was lowered.
  void specialise_branch(Node* branch) {
    Node* any = branch->input()->node;
    const auto all = [&](State state) {
      return std::ranges::all_of(any->inputs, [&](Value* value) { return states_[value] == state; });
    };
    if (all(State::zero)) {
      take(branch, *branch->blocks[1], State::zero);
    } else if (std::ranges::any_of(any->inputs,
                                   [&](Value* value) { return states_[value] == State::defined; })) {
      take(branch, *branch->blocks[0], State::defined);
    } else {
      return;
    }
    if (any->is_unused()) any->destroy();
  }

  void take(Node* branch, Block& block, State state) {
    for (Node* node : block.nodes()) {
      node->move_before(branch);
      if (node->is(Kind::autograd_zero)) states_[node->output()] = State::zero;
    }
    for (size_t i = 0; i < branch->outputs.size(); ++i) {
      branch->output(i)->replace_with(block.output(i));
      states_[block.output(i)] = state;
    }
    branch->destroy();
  }

  Graph& graph_;
  const Registry& registry_;
  std::map<const Value*, State> states_;
};

}  // namespace

void specialise_autograd_zero(Graph& graph, const PassContext& context) {
  Specialiser(graph, context.registry).run();
}

}  // namespace metaprof::ir
