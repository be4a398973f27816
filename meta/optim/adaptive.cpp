// torch/optim/rmsprop.py, adagrad.py, adadelta.py and adamax.py, PyTorch 2.11.

#include <algorithm>

#include "meta/ops/sparse/sparse.h"
#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

constexpr double kAdaptiveEpsilon = 1e-8;

// State 0: mean of squares, 1: momentum buffer, 2: mean of gradients (centered).
class RmsProp final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kAlpha = 0.99;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    if (settings.momentum > 0) state.tensors[1] = kept_zeros(parameter);
    if (settings.centered) state.tensors[2] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List average, gradients;
    for (Group& g : groups) {
      count(g);
      gradients = with_decay(session, settings, g);
      in_place<"_foreach_mul_.Scalar">(session, g.states[0], kAlpha);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[0], gradients, gradients, 1 - kAlpha);
      if (settings.centered) {
        in_place<"_foreach_lerp_.Scalar">(session, g.states[2], gradients, 1 - kAlpha);
        average = fresh<"_foreach_addcmul.Scalar">(session, g.states[0], g.states[2], g.states[2], -1);
        in_place<"_foreach_sqrt_">(session, average);
      } else {
        average = fresh<"_foreach_sqrt">(session, g.states[0]);
      }
      in_place<"_foreach_add_.Scalar">(session, average, kAdaptiveEpsilon);
      if (settings.momentum > 0) {
        in_place<"_foreach_mul_.Scalar">(session, g.states[1], settings.momentum);
        in_place<"_foreach_addcdiv_.Scalar">(session, g.states[1], gradients, average);
        in_place<"_foreach_add_.List">(session, g.parameters, g.states[1], -settings.learning_rate);
      } else {
        in_place<"_foreach_addcdiv_.Scalar">(session, g.parameters, gradients, average,
                                             -settings.learning_rate);
      }
    }
  }

  void for_loop_step(Group& all) override {
    Tensor average, gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      count(state);
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      gradient = with_decay(session, settings, gradient, all.parameters[i]);
      call<"mul_.Tensor">(session, state.tensors[0], kAlpha);
      call<"addcmul_">(session, state.tensors[0], gradient, gradient, 1 - kAlpha);
      if (settings.centered) {
        call<"lerp_.Scalar">(session, state.tensors[2], gradient, 1 - kAlpha);
        average = call<"addcmul">(session, state.tensors[0], state.tensors[2], state.tensors[2], -1);
        call<"sqrt_">(session, average);
      } else {
        average = call<"sqrt">(session, state.tensors[0]);
      }
      if (settings.differentiable) {
        average = call<"add.Tensor">(session, average, kAdaptiveEpsilon);
      } else {
        call<"add_.Tensor">(session, average, kAdaptiveEpsilon);
      }
      if (settings.momentum > 0) {
        call<"mul_.Tensor">(session, state.tensors[1], settings.momentum);
        call<"addcdiv_">(session, state.tensors[1], gradient, average);
        call<"add_.Tensor">(session, all.parameters[i], state.tensors[1], -settings.learning_rate);
      } else {
        call<"addcdiv_">(session, all.parameters[i], gradient, average, -settings.learning_rate);
      }
    }
  }
};

// State 0: sum of squares; made by the constructor, for every parameter.
class Adagrad final : public Algorithm {
 public:
  Adagrad(Session& session, const std::vector<Tensor>& parameters, Settings settings, Implementation how)
      : Algorithm(session, parameters, settings, how) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      states[i].step = counter(false);
      Scoped<Category> born_as(session.category, Category::optimizer_state);
      states[i].tensors[0] = call<"full_like">(session, parameters[i], 0.0, Value(), Value(), Value(),
                                               Value(), MemoryFormat::preserve);
      states[i].made = true;
    }
  }

 private:
  SparseGradients sparse_gradients() const override {
    return settings.weight_decay != 0 ? SparseGradients::refused : SparseGradients::taken;
  }
  void make_state(const Tensor&, ParameterState&) override {}

  void foreach_step(std::vector<Group>& groups) override {
    List numerator, deviation, gradients;
    for (Group& g : groups) {
      if (std::ranges::any_of(g.gradients, [](const Tensor& gradient) { return gradient.is_sparse(); })) {
        for_loop_step(g);
        continue;
      }
      count(g);
      gradients = with_decay(session, settings, g);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[0], gradients, gradients, 1);
      deviation = fresh<"_foreach_sqrt">(session, g.states[0]);
      in_place<"_foreach_add_.Scalar">(session, deviation, kAdaptiveEpsilon);
      if (settings.weight_decay != 0 || settings.maximize) {
        in_place<"_foreach_mul_.ScalarList">(session, gradients, numbers(gradients));
        numerator = gradients;
      } else {
        numerator = fresh<"_foreach_mul.ScalarList">(session, gradients, numbers(gradients));
      }
      in_place<"_foreach_addcdiv_.Scalar">(session, g.parameters, numerator, deviation);
    }
  }

  // What _single_tensor_adagrad has names for; all live until the next parameter's take their places.
  struct SparseRows {
    Tensor deviations, masked, values, indices;
  };

  void sparse_update(SparseRows& rows, const Tensor& gradient, const Tensor& sum, const Tensor& parameter) {
    const auto at_rows = [&](const Tensor& values) {
      return make_sparse(session, rows.indices, values, gradient.sizes());
    };
    rows.indices = alias(Tensor(gradient->extra->parts[0]));
    rows.values = alias(Tensor(gradient->extra->parts[1]));
    call<"add_.Tensor">(session, sum, at_rows(call<"pow.Tensor_Scalar">(session, rows.values, 2)));
    rows.masked = call<"sparse_mask">(session, sum, gradient);
    rows.deviations = alias(Tensor(rows.masked->extra->parts[1]));
    call<"sqrt_">(session, rows.deviations);
    call<"add_.Tensor">(session, rows.deviations, kAdaptiveEpsilon);
    call<"add_.Tensor">(session, parameter,
                        at_rows(call<"div.Tensor">(session, rows.values, rows.deviations)),
                        -settings.learning_rate);
  }

  Tensor square_root(const Tensor& sum) {
    Tensor root = call<"sqrt">(session, sum);
    if (settings.differentiable) return call<"add.Tensor">(session, root, kAdaptiveEpsilon);
    call<"add_.Tensor">(session, root, kAdaptiveEpsilon);
    return root;
  }

  void for_loop_step(Group& all) override {
    SparseRows sparse;
    Tensor deviation, gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      count(state);
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      gradient = with_decay(session, settings, gradient, all.parameters[i]);
      if (gradient.is_sparse()) {
        gradient = call<"coalesce">(session, gradient);
        sparse_update(sparse, gradient, state.tensors[0], all.parameters[i]);
        continue;
      }
      call<"addcmul_">(session, state.tensors[0], gradient, gradient, 1);
      deviation = square_root(state.tensors[0]);
      call<"addcdiv_">(session, all.parameters[i], gradient, deviation, -settings.learning_rate);
    }
  }
};

// State 0: mean of squares of gradients, 1: of updates.
class Adadelta final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kRho = 0.9;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List updates, deviation, gradients;
    for (Group& g : groups) {
      count(g);
      gradients = with_decay(session, settings, g);
      in_place<"_foreach_mul_.Scalar">(session, g.states[0], kRho);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[0], gradients, gradients, 1 - kRho);
      deviation = fresh<"_foreach_add.Scalar">(session, g.states[0], kAdaptiveEpsilon);
      in_place<"_foreach_sqrt_">(session, deviation);
      updates = fresh<"_foreach_add.Scalar">(session, g.states[1], kAdaptiveEpsilon);
      in_place<"_foreach_sqrt_">(session, updates);
      in_place<"_foreach_div_.List">(session, updates, deviation);
      in_place<"_foreach_mul_.List">(session, updates, gradients);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kRho);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], updates, updates, 1 - kRho);
      in_place<"_foreach_add_.List">(session, g.parameters, updates, -settings.learning_rate);
    }
  }

  void for_loop_step(Group& all) override {
    Tensor update, deviation, gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      count(state);
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      gradient = with_decay(session, settings, gradient, all.parameters[i]);
      call<"mul_.Tensor">(session, state.tensors[0], kRho);
      call<"addcmul_">(session, state.tensors[0], gradient, gradient, 1 - kRho);
      deviation = call<"add.Tensor">(session, state.tensors[0], kAdaptiveEpsilon);
      call<"sqrt_">(session, deviation);
      update = call<"add.Tensor">(session, state.tensors[1], kAdaptiveEpsilon);
      call<"sqrt_">(session, update);
      if (settings.differentiable) update = call<"clone">(session, update);
      call<"div_.Tensor">(session, update, deviation);
      call<"mul_.Tensor">(session, update, gradient);
      call<"mul_.Tensor">(session, state.tensors[1], kRho);
      call<"addcmul_">(session, state.tensors[1], update, update, 1 - kRho);
      call<"add_.Tensor">(session, all.parameters[i], update, -settings.learning_rate);
    }
  }
};

// State 0: mean of gradients, 1: decayed largest gradient.
class Adamax final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List denominators, corrections, gradients;
    for (Group& g : groups) {
      count(g);
      gradients = with_decay(session, settings, g);
      in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
      if (!settings.maximize && settings.weight_decay == 0) {
        gradients = fresh<"_foreach_abs">(session, gradients);
      } else {
        in_place<"_foreach_abs_">(session, gradients);
      }
      in_place<"_foreach_add_.Scalar">(session, gradients, kAdaptiveEpsilon);
      in_place<"_foreach_maximum_.List">(session, g.states[1], gradients);
      if (settings.capturable) {
        corrections = fresh<"_foreach_pow.ScalarAndTensor">(session, kBeta1, g.steps);
        in_place<"_foreach_sub_.Scalar">(session, corrections, 1);
        in_place<"_foreach_div_.Scalar">(session, corrections, settings.learning_rate);
        denominators = fresh<"_foreach_mul.List">(session, g.states[1], corrections);
        in_place<"_foreach_addcdiv_.Scalar">(session, g.parameters, g.states[0], denominators);
      } else {
        in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.states[0], g.states[1],
                                                 numbers(g.parameters));
      }
    }
  }

  // Both together in one tensor, whose largest elements are taken: no operator that has `out` has a history.
  void differentiable_largest(const Tensor& gradient, const Tensor& largest, Tensor& both) {
    Tensor joined;
    {
      const Tensor before = call<"unsqueeze">(session, largest, 0);
      const Tensor magnitude = call<"abs">(session, gradient);
      call<"add_.Tensor">(session, magnitude, kAdaptiveEpsilon);
      call<"unsqueeze_">(session, magnitude, 0);
      joined = call<"cat">(session, Value(Value::Tensors{before, magnitude}), 0);
    }
    both = std::move(joined);
    call<"copy_">(session, largest, call<"amax">(session, both, Sizes{0}));
  }

  void for_loop_step(Group& all) override {
    Tensor denominator, correction, both, gradient;  // what Python names first goes first
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      gradient = with_decay(session, settings, gradient, all.parameters[i]);
      count(state);
      call<"lerp_.Scalar">(session, state.tensors[0], gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      if (settings.differentiable) {
        differentiable_largest(gradient, state.tensors[1], both);
      } else {
        const Tensor magnitude = call<"abs">(session, gradient);
        call<"add_.Tensor">(session, magnitude, kAdaptiveEpsilon);
        call<"maximum.out">(session, state.tensors[1], magnitude, state.tensors[1]);
      }
      if (settings.capturable) {
        {
          const Tensor power = call<"pow.Scalar">(session, kBeta1, state.step);
          correction = call<"sub.Tensor">(session, power, 1);
        }
        call<"div_.Tensor">(session, correction, settings.learning_rate);
        denominator = call<"mul.Tensor">(session, state.tensors[1], correction);
        call<"addcdiv_">(session, all.parameters[i], state.tensors[0], denominator);
      } else {
        call<"addcdiv_">(session, all.parameters[i], state.tensors[0], state.tensors[1],
                         -settings.learning_rate);
      }
    }
  }
};

template <class Kind>
std::unique_ptr<Algorithm> make_kind(Session& session, const std::vector<Tensor>& parameters,
                                     Settings settings, Implementation implementation) {
  return std::make_unique<Kind>(session, parameters, settings, implementation);
}

}  // namespace

std::unique_ptr<Algorithm> make_rmsprop(Session& s, const std::vector<Tensor>& p, Settings set,
                                        Implementation how) {
  return make_kind<RmsProp>(s, p, set, how);
}
std::unique_ptr<Algorithm> make_adagrad(Session& s, const std::vector<Tensor>& p, Settings set,
                                        Implementation how) {
  return make_kind<Adagrad>(s, p, set, how);
}
std::unique_ptr<Algorithm> make_adadelta(Session& s, const std::vector<Tensor>& p, Settings set,
                                         Implementation how) {
  return make_kind<Adadelta>(s, p, set, how);
}
std::unique_ptr<Algorithm> make_adamax(Session& s, const std::vector<Tensor>& p, Settings set,
                                       Implementation how) {
  return make_kind<Adamax>(s, p, set, how);
}

}  // namespace metaprof
