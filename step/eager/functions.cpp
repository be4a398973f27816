// Custom autograd functions of a captured program: a node whose backward is a graph of the program
// (torch/csrc/autograd/python_function.cpp).

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/graph/saved_tensor.h"
#include "meta/autograd/graph/views.h"
#include "step/eager/interpreter.h"
#include "step/eager/unmodelled.h"

namespace metaprof {
namespace {

constexpr size_t kOperands = 6;             // of step::function_leave
constexpr size_t kGraph = 5, kWrapped = 6;  // the latter may be left out

class FunctionNode final : public Node {
 public:
  FunctionNode(Session& session, const std::string& name, Interpreter& interpreter, const Operand& backward,
               const std::vector<Tensor>& arguments)
      : Node(session, name + "Backward", session.call), interpreter_(interpreter), backward_(backward) {
    for (const Tensor& argument : arguments) add_next(gradient_edge(argument));
    record_edges();
  }

  /// After the results have been added.
  void keep(const std::vector<Tensor>& saved, std::vector<Tensor> kept, const std::vector<Tensor>& results) {
    for (const Tensor& tensor : saved) {
      const bool is_result = std::ranges::any_of(
          results, [&](const Tensor& result) { return tensor.defined() && result.get() == tensor.get(); });
      saved_.push_back(tensor.defined() ? SavedTensor(tensor, *this, is_result) : SavedTensor());
    }
    kept_ = std::move(kept);
  }

  Gradients apply(Gradients& incoming) override {
    // What is no input of the graph was None in the run (set_materialize_grads(False)).
    for (size_t i = 0; i < outputs.size(); ++i)
      if (is_given(i)) materialise(incoming, i);
    if (backward_.kind != Operand::Kind::graph) {
      // A hook that gives nothing in their place passes the gradients on.
      std::vector<Tensor> made =
          interpreter_.run_hook(backward_.constant.integer(), {incoming.begin(), incoming.end()});
      if (made.empty())
        made.assign(std::make_move_iterator(incoming.begin()), std::make_move_iterator(incoming.end()));
      Gradients outgoing;
      for (size_t i = 0; i < next.size(); ++i) outgoing.push_back(i < made.size() ? made[i] : Tensor());
      return outgoing;
    }
    std::vector<Value> inputs;
    for (const Tensor& gradient : incoming) inputs.emplace_back(gradient);
    for (const SavedTensor& saved : saved_)
      inputs.push_back(saved.defined() ? Value(saved.unpack(*this)) : Value());
    for (const Tensor& tensor : kept_) inputs.emplace_back(tensor);
    const std::vector<Value> found =
        interpreter_.run_backward_of_function(*this, incoming, *backward_.graph, std::move(inputs));
    Gradients outgoing;
    for (size_t i = 0; i < next.size(); ++i)
      outgoing.push_back(i < found.size() && found[i].is_tensor() ? found[i].tensor() : Tensor());
    return outgoing;
  }

  void release_variables() override {
    for (SavedTensor& saved : saved_) saved.release();
  }

 private:
  // Whether the backward is given the gradient of this result.
  bool is_given(size_t i) const {
    if (backward_.kind != Operand::Kind::graph) return true;
    const auto& inputs = backward_.graph->inputs;
    return i < inputs.size() && inputs[i] != kNoValue;
  }

  Interpreter& interpreter_;
  const Operand& backward_;  // a graph, or the number of a hook
  std::vector<SavedTensor> saved_;
  std::vector<Tensor> kept_;
};

bool requires_grad(const std::vector<Tensor>& tensors) {
  return std::ranges::any_of(tensors,
                             [](const Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); });
}

}  // namespace

void Interpreter::leave_function(const GraphNode& node, const Values& values) {
  if (functions_.empty()) fail("step::function_leave: no function has been entered");
  session_.modes.grad = functions_.back();
  functions_.pop_back();
  if (node.operands.size() != kOperands && node.operands.size() != kWrapped + 1)
    fail("step::function_leave: takes {} arguments", kOperands);
  std::vector<Tensor> lists[4];  // arguments, results, saved, kept
  for (size_t i = 0; i < 4; ++i) {
    const Value list = evaluate(node.operands[i + 1], values);
    if (list.is_tensors()) lists[i].assign(list.tensors().begin(), list.tensors().end());
  }
  const auto& [arguments, results, saved, kept] = lists;
  for (const Tensor& argument : arguments)
    if (!argument.defined()) fail("step::function_leave: an argument is not known");
  if (!session_.modes.grad || !requires_grad(arguments) || results.empty()) return;
  const std::string name = evaluate(node.operands[0], values).string();
  const Operand& backward = node.operands[kGraph];
  const bool is_hook =
      backward.kind == Operand::Kind::constant && backward.constant.kind() == Value::Kind::integer;
  if (!is_hook && backward.kind != Operand::Kind::graph) {
    if (options_.strict)
      fail("{}: the backward of {} is not known: leave out --strict to go on", program_.origin, name);
    return attach_unmodelled(session_, name, arguments, results);
  }
  auto made = make<FunctionNode>(session_, name, *this, backward, arguments);
  for (const Tensor& result : results) {
    if (!result.defined()) {
      made->add_undefined_output();
      continue;
    }
    const bool written = std::ranges::any_of(
        arguments, [&](const Tensor& argument) { return argument.get() == result.get(); });
    const uint32_t number = made->add_output(result);
    if (written)
      rebase_history(result, made);
    else
      set_gradient_edge(result, {made, number});
  }
  made->adds_apart = node.operands.size() > kWrapped && evaluate(node.operands[kWrapped], values).boolean();
  made->keep(saved, kept, results);
}

std::vector<Value> Interpreter::run_backward_of_function(Node& node, Gradients& gradients, const Graph& graph,
                                                         std::vector<Value> inputs) {
  backwards_of_functions_.emplace_back(&node, &gradients);
  const struct Leave {
    std::vector<std::pair<Node*, Gradients*>>& running;
    ~Leave() { running.pop_back(); }
  } leave{backwards_of_functions_};
  return run(code_of(graph), std::move(inputs));
}

void Interpreter::clear_saved() {
  if (backwards_of_functions_.empty()) fail("step::clear_saved: no backward of a function runs");
  backwards_of_functions_.back().first->release_variables();
}

void Interpreter::clear_gradients() {
  if (backwards_of_functions_.empty()) fail("step::clear_gradients: no backward of a function runs");
  std::ranges::fill(*backwards_of_functions_.back().second, Tensor());
}

}  // namespace metaprof
