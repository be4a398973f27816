// torch/optim/sgd.py, PyTorch 2.11. State 0: momentum buffer, a copy of the first gradient.

#include <algorithm>

#include "core/error.h"
#include "meta/ops/sparse/sparse.h"
#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

bool any_sparse(const List& gradients) {
  return std::ranges::any_of(gradients, [](const Tensor& gradient) { return gradient.is_sparse(); });
}

class Sgd final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  SparseGradients sparse_gradients() const override {
    return fused() || settings.weight_decay != 0 ? SparseGradients::refused : SparseGradients::taken;
  }

  void make_state(const Tensor& parameter, ParameterState& state) override {
    // The fused step makes all buffers before it runs; the others make each from a gradient, in the step.
    if (!fused() || settings.momentum == 0) return;
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    state.tensors[0] = call<"empty_like">(session, parameter.grad());
  }

  Tensor first_buffer(const Tensor& gradient) {
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    if (gradient.is_sparse()) return call<"clone">(session, gradient);
    return call<"clone">(session, call<"detach">(session, gradient));
  }

  void foreach_step(std::vector<Group>& groups) override {
    List gradients;
    for (Group& g : groups) {
      gradients = g.gradients;
      if (settings.maximize) gradients = negative(gradients);
      if (settings.weight_decay != 0) {
        if (settings.maximize) {
          in_place<"_foreach_add_.List">(session, gradients, g.parameters, settings.weight_decay);
        } else {
          gradients = fresh<"_foreach_add.List">(session, gradients, g.parameters, settings.weight_decay);
        }
      }
      if (settings.momentum != 0) {
        const List buffers = momentum_buffers(g, gradients);
        if (settings.nesterov) {
          add(gradients, buffers, settings.momentum);
        } else {
          gradients = buffers;
        }
      }
      add(g.parameters, gradients, -settings.learning_rate);
    }
  }

  // Lists with something sparse are taken tensor by tensor (_multi_tensor_sgd; aten/src/ATen/native/ForeachUtils.h).
  void add(const List& to, const List& added, double factor) {
    if (!any_sparse(added)) return in_place<"_foreach_add_.List">(session, to, added, factor);
    for (size_t i = 0; i < to.size(); ++i) call<"add_.Tensor">(session, to[i], added[i], factor);
  }

  List negative(const List& gradients) {
    if (!any_sparse(gradients)) return fresh<"_foreach_neg">(session, gradients);
    List negatives;
    for (const Tensor& gradient : gradients) negatives.push_back(metaprof::negative(session, gradient));
    return negatives;
  }

  List momentum_buffers(Group& g, const List& gradients) {
    if (g.states[0].size() == g.parameters.size() && !any_sparse(gradients)) {
      in_place<"_foreach_mul_.Scalar">(session, g.states[0], settings.momentum);
      in_place<"_foreach_add_.List">(session, g.states[0], gradients, 1);
      return g.states[0];
    }
    List buffers;
    for (size_t i = 0; i < gradients.size(); ++i)
      buffers.push_back(updated_buffer(*g.owners[i], gradients[i]));
    return buffers;
  }

  Tensor updated_buffer(ParameterState& state, const Tensor& gradient) {
    Tensor& buffer = state.tensors[0];
    if (buffer.defined()) {
      Scoped<Category> born_as(session.category, Category::optimizer_state);
      // Elements that are not there stay 0: the values alone are multiplied. A sum of two keeps the elements of both.
      const Tensor values = buffer.is_sparse() ? Tensor(buffer->extra->parts.back()) : buffer;
      call<"mul_.Tensor">(session, values, settings.momentum);
      call<"add_.Tensor">(session, buffer, gradient, 1);
    } else {
      buffer = first_buffer(gradient);
    }
    return buffer;
  }

  void for_loop_step(Group& all) override {
    Tensor gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      gradient = settings.maximize ? metaprof::negative(session, all.gradients[i]) : all.gradients[i];
      if (settings.weight_decay != 0)
        gradient = call<"add.Tensor">(session, gradient, all.parameters[i], settings.weight_decay);
      if (settings.momentum != 0) {
        const Tensor buffer = updated_buffer(*all.owners[i], gradient);
        gradient =
            settings.nesterov ? call<"add.Tensor">(session, gradient, buffer, settings.momentum) : buffer;
      }
      call<"add_.Tensor">(session, all.parameters[i], gradient, -settings.learning_rate);
    }
  }

  void fused_step(std::vector<Group>& groups) override {
    for (Group& g : groups)
      in_place<"_fused_sgd_">(session, g.parameters, g.gradients, g.states[0], settings.weight_decay,
                              settings.momentum, settings.learning_rate, 0.0, settings.nesterov,
                              settings.maximize, settings.momentum != 0 && g.owners[0]->steps == 1,
                              grad_scale, found_inf);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_sgd(Session& session, const std::vector<Tensor>& parameters,
                                    Settings settings, Implementation implementation) {
  return std::make_unique<Sgd>(session, parameters, settings, implementation);
}

}  // namespace metaprof
