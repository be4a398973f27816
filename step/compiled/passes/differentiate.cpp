// The gradient of every differentiable graph, as a graph. For each node of the forward, last first, a GradOf holds a
// Derivative: the formulas of the operator's record, on what the call left (prim::Context) and on the tensors that
// the formulas read, which the forward graph keeps: they are captured.
//
//   forward   inputs → real outputs, then temporaries that are captured
//   gradient  gradients of real outputs, gradients of temporaries, captured values → gradients of inputs
//
// A temporary is differentiated, too: a second backward comes through it.

#include <algorithm>
#include <map>

#include "step/compiled/passes/pass.h"
#include "step/compiled/passes/subgraphs.h"

namespace metaprof::ir {
namespace {

Sizes numbers_of(const std::vector<size_t>& list) {
  Sizes numbers;
  for (const size_t number : list) numbers.push_back(static_cast<int64_t>(number));
  return numbers;
}

class Differentiation {
 public:
  explicit Differentiation(Graph& forward) : forward_(forward), gradient_(std::make_shared<Graph>()) {}

  void run(Node& node) {
    const size_t real_outputs = forward_.block().outputs().size();
    for (size_t i = 0; i < real_outputs; ++i) add_incoming(i);
    const std::vector<Node*> nodes = working_nodes(forward_);
    for (size_t i = nodes.size(); i-- > 0;) add_reverse(*nodes[i]);
    std::vector<size_t> outgoing;
    for (size_t i = 0; i < forward_.block().inputs().size(); ++i) {
      const Value* input = forward_.block().input(i);
      const auto found = gradients_.find(input);
      if (!input->type.may_require_grad() || found == gradients_.end()) continue;
      gradient_->add_output(found->second);
      outgoing.push_back(i);
    }
    sort_captures(real_outputs);
    node.attributes["gradient"] = in_order();
    node.attributes["real_outputs"] = Constant(real_outputs);
    node.attributes["incoming"] = Constant(numbers_of(incoming_));
    node.attributes["captured_inputs"] = Constant(numbers_of(captured_inputs_));
    node.attributes["captured_outputs"] = Constant(numbers_of(captured_outputs_));
    node.attributes["outgoing"] = Constant(numbers_of(outgoing));
  }

 private:
  Block& reverse() { return gradient_->block(); }

  void add_incoming(size_t output) {
    const Value* value = forward_.block().output(output);
    if (!value->type.may_require_grad()) return;
    Value* gradient = add_input(value);
    incoming_.push_back(output);
    incoming_values_.push_back(gradient);
    add_gradient(value, gradient);
  }

  // Of a captured value all is known that is known of it; of a gradient, that it is a tensor.
  Value* add_input(const Value* of) { return gradient_->add_input(of->type.kind); }

  void add_gradient(const Value* value, Value* gradient) {
    Value*& sum = gradients_[value];
    if (sum) {
      Node* add = gradient_->create(Kind::autograd_add, {sum, gradient});
      reverse().append(add);
      gradient = add->add_output(Type::Kind::tensor);
    }
    sum = gradient;
  }

  Value* gradient_of(const Value* value) {
    if (const auto found = gradients_.find(value); found != gradients_.end()) return found->second;
    Node* zero = gradient_->create(Kind::autograd_zero);
    reverse().append(zero);
    TensorDetail undefined;
    undefined.defined = false;
    return zero->add_output(Type(undefined));
  }

  // The value inside the gradient; a constant is made again there.
  Value* captured(Value* value) {
    Value*& inside = captured_[value];
    if (inside) return inside;
    if (value->node->is(Kind::constant)) {
      Node* constant = gradient_->create_constant(value->node->value("value"));
      constant->move_after(reverse().parameters.get());
      return inside = constant->output();
    }
    inside = add_input(value);
    inside->name = value->name;
    captures_.push_back(value);
    return inside;
  }

  void add_reverse(Node& node) {
    const bool wanted = std::ranges::any_of(node.outputs, [&](const auto& output) {
      return output->type.may_require_grad() && gradients_.contains(output.get());
    });
    if (!wanted) return;
    if (node.is(Kind::autograd_add)) {
      for (Value* input : node.inputs)
        if (input->type.may_require_grad()) add_gradient(input, gradients_.at(node.output()));
    } else if (node.is(Kind::call)) {
      add_call(node);
    } else if (node.is(Kind::constant_chunk)) {
      add_chunk(node);
    }
  }

  // Arguments that need gradients: what the operator differentiates, or any tensor that a body may use.
  static Sizes wants_of(const Node& node) {
    Sizes wants;
    const auto& arguments = node.op->schema.arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool may = node.op->record.meta.composite
                           ? arguments[i].is_tensor() || arguments[i].is_tensors()
                           : std::ranges::find(node.op->differentiable, i) != node.op->differentiable.end();
      if (may && node.input(i)->type.may_require_grad()) wants.push_back(static_cast<int64_t>(i));
    }
    return wants;
  }

  void add_call(Node& node) {
    const Sizes wants = wants_of(node);
    if (wants.empty()) return;
    const bool by_body = node.op->record.meta.composite;
    if (!by_body && !node.op->has_derivative()) return;
    std::vector<Value*> outputs;  // in case the node is replaced
    for (const auto& output : node.outputs) outputs.push_back(output.get());
    std::vector<Value*> incoming;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!(node.op->without_gradient >> i & 1)) incoming.push_back(gradient_of(outputs[i]));
    Node* derivative = add_derivative(node, incoming);
    std::vector<Value*> arguments = node.inputs;
    const Sizes saves = by_body ? Sizes() : saved_by(node, wants);
    std::vector<Value*> saved;
    for (const int64_t index : saves) saved.push_back(saved_value(node, node.op->saved[size_t(index)]));
    Value* context = by_body ? record(node, wants) : keep(node);
    finish_derivative(derivative, context, incoming, saves);
    for (Value* value : saved) derivative->add_input(captured(value));
    for (const int64_t argument : wants) add_result(derivative, arguments[size_t(argument)]);
    derivative->attributes["wants"] = Constant(wants);
  }

  // The derivative of a call in a GradOf, behind what is there.
  Node* add_derivative(const Node& node, const std::vector<Value*>& incoming) {
    Node* grad_of = gradient_->create(Kind::grad_of, incoming);
    grad_of->attributes["name"] = Constant(node.op->name);
    grad_of->scope = node.scope;
    reverse().append(grad_of);
    Node* derivative = gradient_->create(Kind::derivative);
    grad_of->add_block()->append(derivative);
    derivative->op = node.op;
    derivative->scope = node.scope;
    derivative->attributes["of"] = Constant(node.op->name);
    return derivative;
  }

  void finish_derivative(Node* derivative, Value* context, const std::vector<Value*>& incoming,
                         const Sizes& saves) {
    derivative->add_input(captured(context));
    for (Value* gradient : incoming) derivative->add_input(gradient);
    derivative->attributes["saves"] = Constant(saves);
    derivative->attributes["results"] = Constant(incoming.size());
  }

  // The derivative gives the gradient of an argument, through its GradOf.
  void add_result(Node* derivative, Value* argument) {
    Node* grad_of = derivative->block->owner;
    grad_of->blocks[0]->results->add_input(derivative->add_output(argument->type.kind));
    add_gradient(argument, grad_of->add_output(argument->type.kind));
  }

  // A list of chunks again, which autograd records, and which is taken apart behind it.
  void add_chunk(Node& node) {
    if (!node.input()->type.may_require_grad()) return;
    std::vector<Value*> incoming;
    for (const auto& output : node.outputs) incoming.push_back(gradient_of(output.get()));
    Node* derivative = add_derivative(node, incoming);
    Node* recorded = add_recorded(node, Sizes{0});
    Value* list = recorded->add_output(Type::Kind::tensors);
    Value* context = recorded->add_output(Type::Kind::context);
    Node* unpack = forward_.create(Kind::list_unpack, {list});
    unpack->move_after(recorded);
    Value* input = node.input();
    for (const auto& output : node.outputs) {
      Value* value = unpack->add_output(output->type, output->name);
      output->replace_with(value);
      rename(output.get(), value);
    }
    node.destroy();
    finish_derivative(derivative, context, incoming, Sizes());
    add_result(derivative, input);
    derivative->attributes["wants"] = Constant(Sizes{0});
  }

  // The saved tensors of the rows that are wanted.
  static Sizes saved_by(const Node& node, const Sizes& wants) {
    std::vector<bool> needed(node.op->saved.size());
    for (const RowPlan& row : node.op->rows) {
      const bool wanted = std::ranges::any_of(row.targets, [&](uint8_t target) {
        return std::ranges::find(wants, int64_t{target}) != wants.end();
      });
      if (!wanted) continue;
      for (const uint8_t index : row.saved) needed[index] = true;
    }
    Sizes saves;
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) saves.push_back(static_cast<int64_t>(i));
    return saves;
  }

  static Value* saved_value(const Node& node, const SavedPlan& plan) {
    return plan.result ? node.output(plan.index) : node.input(plan.index);
  }

  // What the call leaves, right behind it.
  Value* keep(Node& node) {
    Node* context = forward_.create(Kind::context, node.inputs);
    for (const auto& output : node.outputs) context->add_input(output.get());
    context->op = node.op;
    context->attributes["of"] = Constant(node.op->name);
    context->move_after(&node);
    return context->add_output(Type::Kind::context);
  }

  // The call once more, recorded by autograd, right behind it.
  Node* add_recorded(Node& node, const Sizes& wants) {
    Node* recorded = forward_.create(Kind::recorded, node.inputs);
    recorded->op = node.op;
    recorded->scope = node.scope;
    recorded->attributes["of"] = Constant(node.op->name);
    recorded->attributes["wants"] = Constant(wants);
    recorded->move_after(&node);
    return recorded;
  }

  Value* record(Node& node, const Sizes& wants) {
    Node* recorded = add_recorded(node, wants);
    for (const auto& output : node.outputs) {
      Value* value = recorded->add_output(output->type, output->name);
      output->replace_with(value);
      rename(output.get(), value);
    }
    Value* context = recorded->add_output(Type::Kind::context);
    node.destroy();
    return context;
  }

  // What is known of a value is known of the one that has taken its place.
  void rename(Value* from, Value* to) {
    if (const auto gradient = gradients_.extract(from)) gradients_[to] = gradient.mapped();
    if (const auto capture = captured_.extract(from)) captured_[to] = capture.mapped();
    std::ranges::replace(captures_, from, to);
  }

  // Captures in the order in which the forward makes them; temporaries become outputs, and are differentiated if
  // anything is.
  void sort_captures(size_t real_outputs) {
    const auto order = [](const Value* value) { return std::pair(value->node->position, value->index); };
    std::ranges::sort(captures_, {}, order);
    std::vector<Value*> from_inputs, from_outputs;
    Block& block = forward_.block();
    for (Value* value : captures_) {
      const auto output = std::ranges::find(block.outputs(), value);
      if (output == block.outputs().end() && value->node->is(Kind::parameter)) {
        captured_inputs_.push_back(value->index);
        from_inputs.push_back(captured_.at(value));
        continue;
      }
      captured_outputs_.push_back(static_cast<size_t>(output - block.outputs().begin()));
      if (output == block.outputs().end()) block.results->add_input(value);
      from_outputs.push_back(captured_.at(value));
    }
    for (size_t i = real_outputs; i < block.outputs().size(); ++i) add_incoming_of_temporary(i);
    captured_values_ = from_inputs;
    captured_values_.insert(captured_values_.end(), from_outputs.begin(), from_outputs.end());
  }

  void add_incoming_of_temporary(size_t output) {
    const Value* value = forward_.block().output(output);
    const auto found = gradients_.find(value);
    if (found == gradients_.end() || !value->type.may_require_grad()) return;
    Value* before = found->second;
    Value* gradient = add_input(value);
    Node* add = gradient_->create(Kind::autograd_add, {gradient, gradient});
    add->move_after(before->node);
    before->replace_with(add->add_output(Type::Kind::tensor));
    add->set_input(1, before);
    incoming_.push_back(output);
    incoming_values_.push_back(gradient);
  }

  // The same graph with its inputs in their order.
  std::shared_ptr<Graph> in_order() {
    auto ordered = std::make_shared<Graph>();
    ValueMap map;
    for (const auto* list : {&incoming_values_, &captured_values_})
      for (const Value* value : *list) map[value] = ordered->add_input(value->type, value->name);
    for (Value* output : insert_copy(reverse(), ordered->block().results.get(), map))
      ordered->add_output(output);
    return ordered;
  }

  Graph& forward_;
  std::shared_ptr<Graph> gradient_;
  std::map<const Value*, Value*> gradients_, captured_;
  std::vector<Value*> captures_;
  std::vector<Value*> incoming_values_, captured_values_;
  std::vector<size_t> incoming_, captured_inputs_, captured_outputs_;
};

void differentiate(Block& block) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) differentiate(*inner);
    if (node->is(Kind::differentiable_graph) && !node->has("gradient"))
      Differentiation(*node->graph("graph")).run(*node);
  }
}

}  // namespace

void differentiate(Graph& graph, const PassContext&) { differentiate(graph.block()); }

}  // namespace metaprof::ir
