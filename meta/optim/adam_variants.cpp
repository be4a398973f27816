// torch/optim/nadam.py and radam.py, PyTorch 2.11. State 0: mean of gradients, 1: of their squares.

#include <cmath>

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

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
    List root;
    for (Group& g : groups) {
      count(g);
      in_place<"_foreach_lerp_.Scalar">(session, g.states[0], g.gradients, 1 - kBeta1);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], g.gradients, g.gradients, 1 - kBeta2);
      root = fresh<"_foreach_sqrt">(session, g.states[1]);
      in_place<"_foreach_mul_.ScalarList">(session, g.states[3], numbers(g.states[3]));
      in_place<"_foreach_div_.ScalarList">(session, root, numbers(root));
      in_place<"_foreach_add_.Scalar">(session, root, kEpsilon);
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.gradients, root, numbers(root));
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.states[0], root, numbers(root));
    }
  }

  void for_loop_step(Group& all) override {
    Tensor denominator;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor &parameter = all.parameters[i], &gradient = all.gradients[i];
      count(state);
      call<"mul_.Tensor">(session, state.tensors[3], kBeta1);
      call<"lerp_.Scalar">(session, state.tensors[0], gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      Tensor corrected = call<"div.Tensor">(session, state.tensors[1], 1 - kBeta2);
      Tensor root = call<"sqrt">(session, corrected);
      corrected.reset();
      denominator = std::move(root);
      call<"add_.Tensor">(session, denominator, kEpsilon);
      call<"addcdiv_">(session, parameter, gradient, denominator, -settings.learning_rate);
      call<"addcdiv_">(session, parameter, state.tensors[0], denominator, -settings.learning_rate);
    }
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
      in_place<"_foreach_lerp_.Scalar">(session, g.states[0], g.gradients, 1 - kBeta1);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], g.gradients, g.gradients, 1 - kBeta2);
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
    Tensor corrected;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor& gradient = all.gradients[i];
      count(state);
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
      const Tensor root = call<"sqrt">(session, state.tensors[1]);
      call<"add_.Tensor">(session, root, kEpsilon);
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
