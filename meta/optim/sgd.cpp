// torch/optim/sgd.py, PyTorch 2.11. State 0: momentum buffer, a copy of the first gradient.

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

class Sgd final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  void make_state(const Tensor& parameter, ParameterState& state) override {
    // The fused step makes all buffers before it runs; the others make each from a gradient, in the step.
    if (!fused() || set.momentum == 0) return;
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    state.tensors[0] = call<"empty_like">(session, parameter.grad());
  }

  Tensor first_buffer(const Tensor& gradient) {
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    return call<"clone">(session, call<"detach">(session, gradient));
  }

  void foreach_step(std::vector<Group>& groups) override {
    List gradients;
    for (Group& g : groups) {
      gradients = g.gradients;
      if (set.maximize) gradients = fresh<"_foreach_neg">(session, gradients);
      if (set.weight_decay != 0) {
        if (set.maximize) {
          in_place<"_foreach_add_.List">(session, gradients, g.parameters, set.weight_decay);
        } else {
          gradients = fresh<"_foreach_add.List">(session, gradients, g.parameters, set.weight_decay);
        }
      }
      if (set.momentum != 0) {
        const List buffers = momentum_buffers(g, gradients);
        if (set.nesterov) {
          in_place<"_foreach_add_.List">(session, gradients, buffers, set.momentum);
        } else {
          gradients = buffers;
        }
      }
      in_place<"_foreach_add_.List">(session, g.parameters, gradients, -set.learning_rate);
    }
  }

  List momentum_buffers(Group& g, const List& gradients) {
    if (g.states[0].size() == g.parameters.size()) {
      in_place<"_foreach_mul_.Scalar">(session, g.states[0], set.momentum);
      in_place<"_foreach_add_.List">(session, g.states[0], gradients, 1);
      return g.states[0];
    }
    List buffers;
    for (size_t i = 0; i < gradients.size(); ++i) buffers.push_back(updated_buffer(*g.of[i], gradients[i]));
    return buffers;
  }

  Tensor updated_buffer(ParameterState& state, const Tensor& gradient) {
    Tensor& buffer = state.tensors[0];
    if (buffer.defined()) {
      call<"mul_.Tensor">(session, buffer, set.momentum);
      call<"add_.Tensor">(session, buffer, gradient, 1);
    } else {
      buffer = first_buffer(gradient);
    }
    return buffer;
  }

  void for_loop_step(Group& all) override {
    Tensor gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      gradient = set.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      if (set.weight_decay != 0)
        gradient = call<"add.Tensor">(session, gradient, all.parameters[i], set.weight_decay);
      if (set.momentum != 0) {
        const Tensor buffer = updated_buffer(*all.of[i], gradient);
        gradient = set.nesterov ? call<"add.Tensor">(session, gradient, buffer, set.momentum) : buffer;
      }
      call<"add_.Tensor">(session, all.parameters[i], gradient, -set.learning_rate);
    }
  }

  void fused_step(std::vector<Group>& groups) override {
    for (Group& g : groups)
      in_place<"_fused_sgd_">(session, g.parameters, g.gradients, g.states[0], set.weight_decay, set.momentum,
                              set.learning_rate, 0.0, set.nesterov, set.maximize,
                              set.momentum != 0 && g.of[0]->steps == 1, grad_scale, found_inf);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_sgd(Session& session, const std::vector<Tensor>& parameters,
                                    Settings settings, Implementation implementation) {
  return std::make_unique<Sgd>(session, parameters, settings, implementation);
}

}  // namespace metaprof
