// torch/optim/adam.py and adamw.py, PyTorch 2.11. State 0: mean of gradients, 1: of their squares, 2: the
// largest of those (amsgrad).

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

class Adam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable || fused());
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
    if (settings.amsgrad) state.tensors[2] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List denominators, correction2, correction1;
    for (Group& g : groups) {
      {
        const List gradients = decayed_gradients(g);
        in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
        in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
        in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], gradients, gradients, 1 - kBeta2);
      }
      if (settings.capturable) device_corrections(g, correction1, correction2);
      if (settings.amsgrad) in_place<"_foreach_maximum_.List">(session, g.states[2], g.states[1]);
      denominators = fresh<"_foreach_sqrt">(session, g.states[settings.amsgrad ? 2 : 1]);
      if (settings.capturable) {
        in_place<"_foreach_div_.List">(session, denominators, correction2);
        in_place<"_foreach_add_.Scalar">(session, denominators, kEpsilon);
        in_place<"_foreach_div_.List">(session, denominators, correction1);
        in_place<"_foreach_addcdiv_.Scalar">(session, g.parameters, g.states[0], denominators, 1);
      } else {
        in_place<"_foreach_div_.ScalarList">(session, denominators, numbers(denominators));
        in_place<"_foreach_add_.Scalar">(session, denominators, kEpsilon);
        in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.states[0], denominators,
                                                 numbers(denominators));
      }
    }
  }

  List decayed_gradients(Group& g) {
    List gradients = g.gradients;
    if (settings.maximize) gradients = fresh<"_foreach_neg">(session, gradients);
    count(g);
    if (settings.weight_decay == 0) return gradients;
    if (settings.decoupled) {
      in_place<"_foreach_mul_.Scalar">(session, g.parameters,
                                       1 - settings.learning_rate * settings.weight_decay);
    } else if (settings.maximize) {
      in_place<"_foreach_add_.List">(session, gradients, g.parameters, settings.weight_decay);
    } else {
      gradients = fresh<"_foreach_add.List">(session, gradients, g.parameters, settings.weight_decay);
    }
    return gradients;
  }

  // Counters on the device: the bias corrections are lists of scalars there.
  void device_corrections(const Group& g, List& correction1, List& correction2) {
    correction1 = fresh<"_foreach_pow.ScalarAndTensor">(session, kBeta1, g.steps);
    correction2 = fresh<"_foreach_pow.ScalarAndTensor">(session, kBeta2, g.steps);
    in_place<"_foreach_sub_.Scalar">(session, correction1, 1);
    in_place<"_foreach_sub_.Scalar">(session, correction2, 1);
    in_place<"_foreach_neg_">(session, correction2);
    in_place<"_foreach_div_.Scalar">(session, correction1, settings.learning_rate);
    in_place<"_foreach_reciprocal_">(session, correction1);
    in_place<"_foreach_sqrt_">(session, correction2);
  }

  void for_loop_step(Group& all) override {
    Tensor denominator;  // what Python names first goes first
    Corrections corrections;
    Tensor gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      const Tensor& parameter = all.parameters[i];
      ParameterState& state = *all.owners[i];
      gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      count(state);
      if (settings.weight_decay != 0) {
        if (settings.decoupled) {
          call<"mul_.Tensor">(session, parameter, 1 - settings.learning_rate * settings.weight_decay);
        } else {
          gradient = call<"add.Tensor">(session, gradient, parameter, settings.weight_decay);
        }
      }
      call<"lerp_.Scalar">(session, state.tensors[0], gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      if (settings.capturable || settings.differentiable) {
        capturable_denominator(state, corrections, denominator);
        const Tensor mean =
            settings.differentiable ? call<"clone">(session, state.tensors[0]) : state.tensors[0];
        call<"addcdiv_">(session, parameter, mean, denominator);
      } else {
        host_denominator(state, denominator);
        call<"addcdiv_">(session, parameter, state.tensors[0], denominator, -settings.learning_rate);
      }
    }
  }

  void host_denominator(const ParameterState& state, Tensor& denominator) {
    if (settings.amsgrad) call<"maximum.out">(session, state.tensors[2], state.tensors[1], state.tensors[2]);
    Tensor root = call<"sqrt">(session, state.tensors[settings.amsgrad ? 2 : 1]);
    Tensor quotient = call<"div.Tensor">(session, root, 1.0);
    root.reset();
    call<"add_.Tensor">(session, quotient, kEpsilon);
    denominator = std::move(quotient);
  }

  // Scalars where the counter is, and the largest squares before; each bound to a Python name until it is bound again.
  struct Corrections {
    Tensor largest, second_root, negative_step_size, step_size, second, first;
  };

  Tensor one_minus_power(double base, const Tensor& step) {
    const Tensor power = call<"pow.Scalar">(session, base, step);
    return call<"rsub.Scalar">(session, power, 1);
  }

  void capturable_denominator(const ParameterState& state, Corrections& c, Tensor& denominator) {
    c.first = one_minus_power(kBeta1, state.step);
    c.second = one_minus_power(kBeta2, state.step);
    {
      // lr / bias_correction1 is reciprocal() * lr.
      const Tensor reciprocal = call<"reciprocal">(session, c.first);
      c.step_size = call<"mul.Tensor">(session, reciprocal, settings.learning_rate);
    }
    c.negative_step_size = call<"neg">(session, c.step_size);
    c.second_root = call<"sqrt">(session, c.second);
    if (settings.amsgrad) {
      c.largest = settings.differentiable ? call<"clone">(session, state.tensors[2]) : state.tensors[2];
      const Tensor larger = call<"maximum">(session, c.largest, state.tensors[1]);
      call<"copy_">(session, state.tensors[2], larger);
    }
    Tensor root = call<"sqrt">(session, state.tensors[settings.amsgrad ? 2 : 1]);
    Tensor scale = call<"mul.Tensor">(session, c.second_root, c.negative_step_size);
    Tensor quotient = call<"div.Tensor">(session, root, scale);
    root.reset();
    scale.reset();
    Tensor reciprocal = call<"reciprocal">(session, c.negative_step_size);
    Tensor epsilon = call<"mul.Tensor">(session, reciprocal, kEpsilon);
    reciprocal.reset();
    call<"add_.Tensor">(session, quotient, epsilon);
    epsilon.reset();
    denominator = std::move(quotient);
  }

  void fused_step(std::vector<Group>& groups) override {
    for (Group& g : groups) {
      count(g);
      if (settings.decoupled) {
        run_fused<"_fused_adamw_">(g);
      } else {
        run_fused<"_fused_adam_">(g);
      }
      if (!found_inf.defined()) continue;
      // A skipped step does not count: 1 on overflow, else 0.
      List overflow;
      for (size_t i = 0; i < g.steps.size(); ++i) overflow.push_back(found_inf);
      in_place<"_foreach_sub_.List">(session, g.steps, overflow);
    }
  }

  template <FixedString name>
  void run_fused(const Group& g) {
    in_place<name>(session, g.parameters, g.gradients, g.states[0], g.states[1], g.states[2], g.steps,
                   settings.learning_rate, kBeta1, kBeta2, settings.weight_decay, kEpsilon, settings.amsgrad,
                   settings.maximize, grad_scale, found_inf);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_adam(Session& session, const std::vector<Tensor>& parameters,
                                     Settings settings, Implementation implementation) {
  return std::make_unique<Adam>(session, parameters, settings, implementation);
}

}  // namespace metaprof
