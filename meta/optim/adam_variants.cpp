// torch/optim/nadam.py and radam.py, PyTorch 2.11. State 0: mean of gradients, 1: of their squares.

#include <cmath>

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

// As with_decay, but the decay may act on the parameters.
List decayed_gradients(Session& session, const Settings& settings, const Group& g) {
  if (!settings.decoupled || settings.weight_decay == 0) return with_decay(session, settings, g);
  in_place<"_foreach_mul_.Scalar">(session, g.parameters, 1 - settings.learning_rate * settings.weight_decay);
  return settings.maximize ? fresh<"_foreach_neg">(session, g.gradients) : g.gradients;
}

// The same for one, which is negated already.
Tensor decayed_gradient(Session& session, const Settings& settings, const Tensor& gradient,
                        const Tensor& parameter) {
  if (settings.weight_decay == 0) return gradient;
  if (!settings.decoupled) return call<"add.Tensor">(session, gradient, parameter, settings.weight_decay);
  call<"mul_.Tensor">(session, parameter, 1 - settings.learning_rate * settings.weight_decay);
  return gradient;
}

// State 3: product of the momenta so far, on the host.
class NAdam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(false);
    state.tensors[3] = counter(false);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List gradients, root;
    for (Group& g : groups) {
      gradients = decayed_gradients(session, settings, g);
      count(g);
      in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], gradients, gradients, 1 - kBeta2);
      root = fresh<"_foreach_sqrt">(session, g.states[1]);
      in_place<"_foreach_mul_.ScalarList">(session, g.states[3], numbers(g.states[3]));
      in_place<"_foreach_div_.ScalarList">(session, root, numbers(root));
      in_place<"_foreach_add_.Scalar">(session, root, kEpsilon);
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, gradients, root, numbers(root));
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.states[0], root, numbers(root));
    }
  }

  void for_loop_step(Group& all) override {
    Tensor gradient, mean, denominator;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor& parameter = all.parameters[i];
      gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      mean = state.tensors[0];
      count(state);
      gradient = decayed_gradient(session, settings, gradient, parameter);
      call<"mul_.Tensor">(session, state.tensors[3], kBeta1);
      call<"lerp_.Scalar">(session, mean, gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      Tensor corrected = call<"div.Tensor">(session, state.tensors[1], 1 - kBeta2);
      Tensor root = call<"sqrt">(session, corrected);
      corrected.reset();
      denominator = std::move(root);
      if (settings.differentiable) {
        differentiable_update(state, gradient, mean, denominator);
        call<"addcdiv_">(session, parameter, gradient, denominator);
        call<"addcdiv_">(session, parameter, mean, denominator);
      } else {
        call<"add_.Tensor">(session, denominator, kEpsilon);
        call<"addcdiv_">(session, parameter, gradient, denominator, -settings.learning_rate);
        call<"addcdiv_">(session, parameter, mean, denominator, -settings.learning_rate);
      }
    }
  }

  // Gradient and mean are multiplied by scalars of the host, which have a history.
  void differentiable_update(const ParameterState& state, Tensor& gradient, Tensor& mean,
                             Tensor& denominator) {
    denominator = call<"add.Tensor">(session, denominator, kEpsilon);
    const Tensor next = call<"mul.Tensor">(session, state.tensors[3], kBeta1);
    gradient = call<"mul.Tensor">(session, gradient, step_size(state.tensors[3]));
    mean = call<"mul.Tensor">(session, mean, step_size(next));
  }

  // number / (1 - product)
  Tensor step_size(const Tensor& product) {
    const Tensor rest = call<"rsub.Scalar">(session, product, 1);
    const Tensor reciprocal = call<"reciprocal">(session, rest);
    return call<"mul.Tensor">(session, reciprocal, -settings.learning_rate);
  }
};

class RAdam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(false);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List buffer;
    for (Group& g : groups) {
      count(g);
      {
        const List gradients = decayed_gradients(session, settings, g);
        in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
        in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
        in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], gradients, gradients, 1 - kBeta2);
      }
      buffer = fresh<"_foreach_sqrt">(session, g.states[1]);
      in_place<"_foreach_add_.Scalar">(session, buffer, kEpsilon);
      in_place<"_foreach_div_.ScalarList">(session, buffer, numbers(buffer));
      in_place<"_foreach_reciprocal_">(session, buffer);
      in_place<"_foreach_add_.ScalarList">(session, buffer, numbers(buffer));
      in_place<"_foreach_addcmul_.Scalar">(session, g.parameters, g.states[0], buffer);
    }
  }

  // A loop leaves the rectification out of the first steps.
  bool steps_alike() const override {
    return implementation != Implementation::for_loop || (!states.empty() && is_rectified(states[0].steps));
  }

  // The variance is rectified once enough steps have been averaged: more than 5 "effective" ones.
  static bool is_rectified(int64_t step) {
    const double limit = 2 / (1 - kBeta2) - 1, decay = std::pow(kBeta2, double(step));
    return limit - 2 * double(step) * decay / (1 - decay) > 5;
  }

  void for_loop_step(Group& all) override {
    Tensor gradient, corrected;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      count(state);
      gradient = decayed_gradient(session, settings, gradient, all.parameters[i]);
      call<"lerp_.Scalar">(session, state.tensors[0], gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      corrected = call<"div.Tensor">(session, state.tensors[0], 1 - kBeta1);
      Tensor update = call<"mul.Tensor">(session, corrected, settings.learning_rate);
      if (is_rectified(state.steps)) update = rectified(update, state);
      call<"add_.Tensor">(session, all.parameters[i], update, -1.0);
    }
  }

  // update · adaptive learning rate · rectification
  Tensor rectified(Tensor update, const ParameterState& state) {
    Tensor rate;
    {
      Tensor root = call<"sqrt">(session, state.tensors[1]);
      if (settings.differentiable) {
        root = call<"add.Tensor">(session, root, kEpsilon);
      } else {
        call<"add_.Tensor">(session, root, kEpsilon);
      }
      const Tensor reciprocal = call<"reciprocal">(session, root);
      rate = call<"mul.Tensor">(session, reciprocal, 1.0);
    }
    Tensor adapted = call<"mul.Tensor">(session, update, rate);
    update.reset();
    rate.reset();
    return call<"mul.Tensor">(session, adapted, 1.0);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_nadam(Session& session, const std::vector<Tensor>& parameters,
                                      Settings settings, Implementation implementation) {
  return std::make_unique<NAdam>(session, parameters, settings, implementation);
}
std::unique_ptr<Algorithm> make_radam(Session& session, const std::vector<Tensor>& parameters,
                                      Settings settings, Implementation implementation) {
  return std::make_unique<RAdam>(session, parameters, settings, implementation);
}

}  // namespace metaprof
