#include "meta/autograd/modes/joint_function.h"

#include <algorithm>
#include <set>

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/views.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

// Where a backward begins: it does not need what the part gives.
Tensor without_memory(const Tensor& output) {
  Tensor root = alias(output);
  root->storage = {};
  set_gradient_edge(root, gradient_edge(output));
  return root;
}

Gradients found_gradients(Session& session, const Surroundings& before, const RegionBody& body,
                          const std::vector<Value>& inputs, std::span<const Tensor> incoming) {
  std::vector<Tensor> roots, gradients, differentiable = tensors_in(inputs);
  std::erase_if(differentiable, [](const Tensor& tensor) { return !tensor.requires_grad(); });
  {
    const AgainAsBefore again(session, before);
    const std::vector<Value> outputs = body(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || !outputs[i].tensor().requires_grad()) continue;
      roots.push_back(without_memory(outputs[i].tensor()));
      gradients.push_back(incoming[i]);
    }
  }
  if (roots.empty() || differentiable.empty()) return Gradients(differentiable.size());
  return grad(session, roots, differentiable, gradients, {.allow_unused = true});
}

}  // namespace

std::vector<Tensor> tensors_in(std::span<const Value> values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values)
    if (value.is_tensor()) tensors.push_back(value.tensor());
  return tensors;
}

bool needs_gradients(const Session& session, std::span<const Value> values) {
  return session.modes.grad && std::ranges::any_of(values, [](const Value& value) {
           return value.is_tensor() && value.tensor().requires_grad();
         });
}

void trace_on_copies(Session& session, std::span<const Tensor> tensors) {
  std::vector<Tensor> copies;
  copies.reserve(tensors.size());
  for (const Tensor& tensor : tensors)
    copies.push_back(call<"empty_strided">(session, tensor.sizes(), tensor.strides(), tensor.dtype(), Value(),
                                           tensor.device()));
  while (!copies.empty()) copies.pop_back();  // a list of Python's frees the last one first
}

Gradients gradients_of_part(Session& session, const Surroundings& before, const RegionBody& body,
                            const std::vector<Value>& inputs, std::span<const Tensor> incoming) {
  Gradients found = found_gradients(session, before, body, inputs, incoming);
  Gradients outgoing;
  size_t next = 0;
  for (const Value& value : inputs) {
    outgoing.push_back(Tensor());
    if (!value.is_tensor()) continue;
    if (value.tensor().requires_grad()) outgoing.back() = std::move(found[next++]);
    if (!outgoing.back().defined()) outgoing.back() = call<"zeros_like">(session, value.tensor());
  }
  std::set<const Storage*> taken;
  for (const Tensor& tensor : tensors_in(inputs)) taken.insert(tensor->storage.get());
  for (const Tensor& tensor : incoming)
    if (tensor.defined()) taken.insert(tensor->storage.get());
  for (Tensor& gradient : outgoing) {
    if (gradient.defined() && taken.contains(gradient->storage.get()))
      gradient = call<"clone">(session, gradient);
    if (gradient.defined()) taken.insert(gradient->storage.get());
  }
  return outgoing;
}

}  // namespace metaprof
