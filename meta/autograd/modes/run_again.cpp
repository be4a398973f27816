#include "meta/autograd/modes/run_again.h"

#include "meta/autograd/graph/views.h"

namespace metaprof {

AgainAsBefore::AgainAsBefore(Session& session, const Surroundings& before)
    : autocast_(session, before.modes.autocast, before.modes.autocast_dtype, before.modes.autocast_cache),
      grad_(session.modes.grad, true),
      above_(session.modes.below_autograd, false),
      phase_(session.phase, Phase::recompute),
      category_(session.category, Category::activation),
      module_(session.module, before.module) {}

PartFunction::PartFunction(Session& session, std::string_view name, RegionBody body,
                           const std::vector<Value>& inputs)
    : Node(session, name, session.call),
      body_(std::move(body)),
      before_{session.modes, session.module},
      plain_(inputs) {
  for (Value& value : plain_) {
    saved_.emplace_back();
    add_next(value.is_tensor() ? gradient_edge(value.tensor()) : Edge());
    requires_grad_.push_back(value.is_tensor() && value.tensor().requires_grad());
    if (!value.is_tensor()) continue;
    saved_.back() = SavedTensor(value.tensor(), *this, false);
    value = Value();
  }
  record_edges();
}

void PartFunction::release_variables() {
  for (SavedTensor& saved : saved_) saved.release();
}

std::vector<Value> PartFunction::unpack() {
  std::vector<Value> inputs = plain_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!saved_[i].defined()) continue;
    Tensor detached = alias(saved_[i].unpack(*this));
    detached->requires_grad = requires_grad_[i];
    inputs[i] = Value(std::move(detached));
  }
  return inputs;
}

std::vector<Value> run_as_function(Session& session, const Ref<Node>& node, const RegionBody& body,
                                   const std::vector<Value>& inputs) {
  std::vector<Value> outputs;
  {
    Scoped<bool> no_grad(session.modes.grad, false);
    outputs = body(inputs);
  }
  bool requires_grad = false;
  for (const Edge& edge : node->next) requires_grad |= edge.valid();
  for (Value& output : outputs) {
    if (!requires_grad || !output.is_tensor() || !is_differentiable(output.tensor().dtype())) {
      node->add_undefined_output();
    } else {
      const uint32_t output_nr = node->add_output(output.tensor());
      set_gradient_edge(output.tensor(), {node, output_nr});
    }
  }
  return outputs;
}

}  // namespace metaprof
