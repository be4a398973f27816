#include "step/compiled/executor/differentiable_code.h"

#include <algorithm>

#include "meta/autograd/graph/views.h"
#include "step/compiled/executor/interpreter.h"

namespace metaprof::ir {
namespace {

std::vector<size_t> numbers(const Node& node, const char* key) {
  std::vector<size_t> numbers;
  for (const int64_t number : node.value(key).integers()) numbers.push_back(static_cast<size_t>(number));
  return numbers;
}

bool requires_grad(const metaprof::Value& value) {
  if (value.is_tensors())
    return std::ranges::any_of(value.tensors(), [](const Tensor& tensor) { return tensor.requires_grad(); });
  return value.is_tensor() && value.tensor().requires_grad();
}

metaprof::Value detached(metaprof::Value value) {
  if (value.is_tensor()) return {alias(value.tensor())};
  if (!value.is_tensors()) return value;
  metaprof::Value::Tensors tensors;
  for (const Tensor& tensor : value.tensors()) tensors.push_back(tensor.defined() ? alias(tensor) : tensor);
  return {std::move(tensors)};
}

}  // namespace

// --- The node

DifferentiableGraphNode::DifferentiableGraphNode(Session& session, std::shared_ptr<GraphRunner> gradient)
    : metaprof::Node(session, "DifferentiableGraphBackward", session.call), gradient_(std::move(gradient)) {}

void DifferentiableGraphNode::add_outgoing(const metaprof::Value& input) {
  outgoing_sizes_.push_back(input.is_tensors() ? input.tensors().size() : kSingle);
  if (!input.is_tensors()) return add_next(gradient_edge(input.tensor()));
  for (const Tensor& tensor : input.tensors()) add_next(gradient_edge(tensor));
}

// A list is kept tensor by tensor: it may be changed before the backward.
void DifferentiableGraphNode::capture(const metaprof::Value& value, bool output) {
  if (value.is_tensors()) {
    captured_.push_back(Captured::list);
    list_sizes_.push_back(value.tensors().size());
    for (const Tensor& tensor : value.tensors()) tensors_.emplace_back(tensor, *this, output);
  } else if (value.is_tensor()) {
    captured_.push_back(Captured::tensor);
    tensors_.emplace_back(value.tensor(), *this, output);
  } else {
    captured_.push_back(Captured::value);
    values_.push_back(value);
  }
}

metaprof::Value DifferentiableGraphNode::add_incoming(const metaprof::Value& output) {
  const auto with_history = [&](const Tensor& tensor) {
    if (!tensor.defined() || !is_differentiable(tensor.dtype())) {
      add_undefined_output();
      return tensor;
    }
    // An output that stands twice among the outputs has a history for each.
    Tensor own = tensor->grad_fn ? alias(tensor) : tensor;
    const uint32_t number = add_output(own);
    set_gradient_edge(own, {Ref<metaprof::Node>(this), number});
    return own;
  };
  if (!output.is_tensors()) {
    incoming_sizes_.push_back(kSingle);
    return {with_history(output.tensor())};
  }
  incoming_sizes_.push_back(output.tensors().size());
  metaprof::Value::Tensors tensors;
  for (const Tensor& tensor : output.tensors()) tensors.push_back(with_history(tensor));
  return {std::move(tensors)};
}

Tensor DifferentiableGraphNode::zeros_like(const Geometry& expected) const {
  if (!expected.defined()) return Tensor();
  return call<"zeros">(session, expected->sizes, expected->dtype, metaprof::Value(), expected->device);
}

// Of a list whose elements have no gradients all, those are zeros: a formula takes the list as a whole.
std::vector<metaprof::Value> DifferentiableGraphNode::inputs_of_gradient(Gradients& incoming) {
  std::vector<metaprof::Value> inputs;
  size_t next_gradient = 0, next_tensor = 0, next_value = 0, next_list = 0;
  for (const size_t size : incoming_sizes_) {
    if (size == kSingle) {
      inputs.emplace_back(std::move(incoming[next_gradient++]));
      continue;
    }
    metaprof::Value::Tensors list;
    for (size_t i = 0; i < size; ++i, ++next_gradient)
      list.push_back(incoming[next_gradient].defined() ? std::move(incoming[next_gradient])
                                                       : zeros_like(outputs[next_gradient]));
    inputs.emplace_back(std::move(list));
  }
  for (const Captured kind : captured_) {
    if (kind == Captured::value) {
      inputs.push_back(values_[next_value++]);
    } else if (kind == Captured::tensor) {
      inputs.emplace_back(tensors_[next_tensor++].unpack(*this));
    } else {
      metaprof::Value::Tensors list;
      for (size_t i = 0; i < list_sizes_[next_list]; ++i)
        list.push_back(tensors_[next_tensor++].unpack(*this));
      ++next_list;
      inputs.emplace_back(std::move(list));
    }
  }
  return inputs;
}

void DifferentiableGraphNode::produce(Gradients& outgoing, Tensor gradient) const {
  const size_t i = outgoing.size();
  const Edge& edge = next[i];
  if (!edge.valid()) {
    outgoing.push_back(Tensor());
  } else if (gradient.defined()) {
    outgoing.push_back(std::move(gradient));
  } else {  // zeros of what the next node expects
    outgoing.push_back(
        edge.node->outputs.size() > edge.input_nr ? zeros_like(edge.node->outputs[edge.input_nr]) : Tensor());
  }
}

Gradients DifferentiableGraphNode::apply(Gradients& incoming) {
  std::vector<metaprof::Value> inputs = inputs_of_gradient(incoming);
  std::vector<metaprof::Value> gradients = gradient_->run(session, std::move(inputs));
  Gradients outgoing;
  for (size_t i = 0; i < gradients.size(); ++i) {
    metaprof::Value& gradient = gradients[i];
    if (outgoing_sizes_[i] == kSingle) {
      produce(outgoing, gradient.take_tensor());
      continue;
    }
    // That of a list is one undefined tensor where it was specialised away: each of the list's edges gets its own.
    for (size_t t = 0; t < outgoing_sizes_[i]; ++t)
      produce(outgoing, gradient.is_tensors() ? gradient.tensors()[t] : Tensor());
  }
  return outgoing;
}

void DifferentiableGraphNode::release_variables() {
  for (SavedTensor& tensor : tensors_) tensor.release();
  for (metaprof::Value& value : values_) value = {};
}

// --- The code

DifferentiableCode::DifferentiableCode(const Node& node, Code forward, std::shared_ptr<GraphRunner> gradient)
    : forward_(std::move(forward)), gradient_(std::move(gradient)), real_outputs_(node.outputs.size()) {
  if (!gradient_) return;
  incoming_ = numbers(node, "incoming");
  captured_inputs_ = numbers(node, "captured_inputs");
  captured_outputs_ = numbers(node, "captured_outputs");
  outgoing_ = numbers(node, "outgoing");
}

std::vector<metaprof::Value> DifferentiableCode::run(Session& session,
                                                     std::vector<metaprof::Value> inputs) const {
  // The graph was compiled for what may require grad; of a list that is known only now.
  const bool needs_gradient =
      gradient_ && std::ranges::any_of(outgoing_, [&](size_t i) { return requires_grad(inputs[i]); });
  if (!needs_gradient) {
    std::vector<metaprof::Value> outputs = metaprof::ir::run(forward_, session, std::move(inputs));
    outputs.resize(real_outputs_);
    return outputs;
  }
  auto node = make<DifferentiableGraphNode>(session, gradient_);
  for (const size_t i : outgoing_) node->add_outgoing(inputs[i]);
  for (const size_t i : captured_inputs_) node->capture(inputs[i], false);
  for (metaprof::Value& value : inputs) value = detached(std::move(value));
  std::vector<metaprof::Value> outputs = metaprof::ir::run(forward_, session, std::move(inputs));
  for (const size_t i : incoming_) outputs[i] = node->add_incoming(outputs[i]);
  for (const size_t i : captured_outputs_) node->capture(outputs[i], true);
  node->record_edges();
  outputs.resize(real_outputs_);
  return outputs;
}

}  // namespace metaprof::ir
