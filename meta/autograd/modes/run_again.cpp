#include "meta/autograd/modes/run_again.h"

namespace metaprof {

AgainAsBefore::AgainAsBefore(Session& session, const Surroundings& before)
    : autocast_(session, before.modes.autocast, before.modes.autocast_dtype, before.modes.autocast_cache),
      grad_(session.modes.grad, true),
      above_(session.modes.below_autograd, false),
      phase_(session.phase, Phase::recompute),
      category_(session.category, Category::activation),
      module_(session.module, before.module) {}

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
