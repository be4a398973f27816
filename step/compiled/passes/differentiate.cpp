// The gradient of every differentiable graph, as a graph. For each node of the forward, last first, a GradOf holds
// the calls of the operator's formula (step/compiled/autodiff). What they read of the forward is captured.
//
//   forward   inputs → real outputs, then temporaries that are captured
//   gradient  gradients of real outputs, gradients of temporaries, captured values → gradients of inputs
//
// A temporary is differentiated, too: a second backward comes through it.

#include <algorithm>
#include <map>
#include <unordered_set>

#include "step/compiled/autodiff/formula.h"
#include "step/compiled/ir/subgraphs.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

Sizes numbers_of(const std::vector<size_t>& list) {
  Sizes numbers;
  for (const size_t number : list) numbers.push_back(static_cast<int64_t>(number));
  return numbers;
}

class Differentiation {
 public:
  Differentiation(Graph& forward, const PassContext& context)
      : forward_(forward), context_(context), gradient_(std::make_shared<Graph>()) {}

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
    drop_unused();
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

  // Of a tensor nothing is known but that it is one: it comes in as what it is then.
  Value* add_input(const Value* of) {
    Type type = of->type.kind;
    type.optional = of->type.optional && !type.is_tensor();
    return gradient_->add_input(type);
  }

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
      add_formula(node);
    } else if (node.is(Kind::constant_chunk)) {
      add_chunk(node);
    }
  }

  Node* add_grad_of(const Node& node, const std::vector<Value*>& incoming) {
    Node* grad_of = gradient_->create(Kind::grad_of, incoming);
    grad_of->attributes["name"] = Constant(node.op->name);
    grad_of->scope = node.scope;
    reverse().append(grad_of);
    grad_of->add_block();
    return grad_of;
  }

  void add_formula(Node& node) {
    const FormulaRow& row = *formula_of(node);
    std::vector<Value*> incoming;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!(node.op->without_gradient >> i & 1)) incoming.push_back(gradient_of(node.output(i)));
    Node* grad_of = add_grad_of(node, incoming);
    Formula formula(node, *grad_of->blocks[0], incoming, context_.registry,
                    [this](Value* value) { return captured(value); });
    if (row.calls_functions) grad_of->attributes["calls_functions"] = Constant(true);
    row.write(formula);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (formula.results()[i] != node.output(i)) rename(node.output(i), formula.results()[i]);
    // Those of arguments come in the order of arguments, whatever order the formula has.
    auto given = formula.given();
    std::ranges::stable_sort(given, {}, [](const auto& one) { return one.first; });
    for (const auto& [argument, gradient] : given) {
      grad_of->blocks[0]->results->add_input(gradient);
      Value* output = grad_of->add_output(node.input(argument)->type.kind);
      if (node.input(argument)->type.may_require_grad()) add_gradient(node.input(argument), output);
    }
  }

  // Chunks side by side again.
  void add_chunk(Node& node) {
    if (!node.input()->type.may_require_grad()) return;
    std::vector<Value*> incoming;
    for (const auto& output : node.outputs) incoming.push_back(gradient_of(output.get()));
    Node* grad_of = add_grad_of(node, incoming);
    Block& body = *grad_of->blocks[0];
    Node* list = gradient_->create(Kind::list_construct, incoming);
    list->attributes["of_chunks"] = Constant(true);
    body.append(list);
    Node* whole = gradient_->create_call(*context_.registry.find("aten::cat"),
                                         {list->add_output(Type::Kind::tensors), captured(node.input(2))});
    whole->scope = node.scope;
    body.append(whole);
    body.results->add_input(whole->output());
    add_gradient(node.input(), grad_of->add_output(Type::Kind::tensor));
  }

  // What is known of a value is known of the one that has taken its place.
  void rename(Value* from, Value* to) {
    if (const auto gradient = gradients_.extract(from)) gradients_[to] = gradient.mapped();
    if (const auto capture = captured_.extract(from)) captured_[to] = capture.mapped();
    std::ranges::replace(captures_, from, to);
  }

  // What only gradients that nobody wants read is not captured, but where the framework's formula calls a function: it
  // takes the call to have effects (torch/csrc/jit/ir/ir.cpp, hasSideEffects, 2.11).
  void drop_unused() {
    const std::vector<Node*> nodes = reverse().nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      Node* node = nodes[i];
      if (node->has("calls_functions")) continue;
      if (node->is_unused())
        node->destroy();
      else if (node->is(Kind::grad_of))
        drop_unused(*node);
    }
    std::erase_if(captures_, [&](const Value* value) { return !captured_.at(value)->is_used(); });
    std::vector<Node*> left{reverse().parameters.get()};
    collect_nodes(reverse(), left);
    std::unordered_set<const Value*> made;
    for (const Node* node : left)
      for (const auto& output : node->outputs) made.insert(output.get());
    std::erase_if(gradients_, [&](const auto& entry) { return !made.contains(entry.second); });
  }

  static void drop_unused(Node& grad_of) {
    Block& body = *grad_of.blocks[0];
    for (size_t i = grad_of.outputs.size(); i-- > 0;) {
      if (grad_of.output(i)->is_used()) continue;
      body.results->remove_input(i);
      grad_of.remove_output(i);
    }
    const std::vector<Node*> nodes = body.nodes();
    for (size_t i = nodes.size(); i-- > 0;)
      if (nodes[i]->is_unused()) nodes[i]->destroy();
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
  const PassContext& context_;
  std::shared_ptr<Graph> gradient_;
  std::map<const Value*, Value*> gradients_, captured_;
  std::vector<Value*> captures_;
  std::vector<Value*> incoming_values_, captured_values_;
  std::vector<size_t> incoming_, captured_inputs_, captured_outputs_;
};

void differentiate(Block& block, const PassContext& context) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) differentiate(*inner, context);
    if (node->is(Kind::differentiable_graph) && !node->has("gradient"))
      Differentiation(*node->graph("graph"), context).run(*node);
  }
}

}  // namespace

void differentiate(Graph& graph, const PassContext& context) { differentiate(graph.block(), context); }

}  // namespace metaprof::ir
