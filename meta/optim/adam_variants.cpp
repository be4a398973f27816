// torch/optim/nadam.py and radam.py, PyTorch 2.11. State 0: mean of gradients, 1: of their squares.

#include <cmath>

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

List negated_gradients(Session& session, const Settings& settings, const Group& g) {
  return settings.maximize ? fresh<"_foreach_neg">(session, g.gradients) : g.gradients;
}

// Decay acts on the parameters, or is added to what is negated already, in its memory.
List decayed_gradients(Session& session, const Settings& settings, const Group& g, List gradients) {
  if (settings.weight_decay == 0) return gradients;
  if (settings.decoupled) {
    in_place<"_foreach_mul_.Scalar">(session, g.parameters,
                                     1 - settings.learning_rate * settings.weight_decay);
    return gradients;
  }
  if (!settings.maximize)
    return fresh<"_foreach_add.List">(session, gradients, g.parameters, settings.weight_decay);
  in_place<"_foreach_add_.List">(session, gradients, g.parameters, settings.weight_decay);
  return gradients;
}

// The same for one, which is negated already.
Tensor decayed_gradient(Session& session, const Settings& settings, const Tensor& gradient,
                        const Tensor& parameter) {
  if (settings.weight_decay == 0) return gradient;
  if (!settings.decoupled) return call<"add.Tensor">(session, gradient, parameter, settings.weight_decay);
  call<"mul_.Tensor">(session, parameter, 1 - settings.learning_rate * settings.weight_decay);
  return gradient;
}

// number ** step of counters on the device, and what Python makes of it: 1 - number ** step.
Tensor one_minus_power(Session& session, double number, const Tensor& step) {
  const Tensor power = call<"pow.Scalar">(session, number, step);
  return call<"rsub.Scalar">(session, power, 1);
}
List one_minus_powers(Session& session, double number, const List& steps) {
  List powers = fresh<"_foreach_pow.ScalarAndTensor">(session, number, steps);
  in_place<"_foreach_neg_">(session, powers);
  in_place<"_foreach_add_.Scalar">(session, powers, 1);
  return powers;
}

// State 3: product of the momenta so far, where the counter is.
class NAdam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kMomentumDecay = 4e-3, kDecayBase = 0.96;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[3] = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    DeviceSteps on_device;
    List root, gradients;  // what Python names first goes first
    for (Group& g : groups) {
      gradients = negated_gradients(session, settings, g);
      count(g);
      gradients = decayed_gradients(session, settings, g, std::move(gradients));
      in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
      in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
      in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], gradients, gradients, 1 - kBeta2);
      root = fresh<"_foreach_sqrt">(session, g.states[1]);
      if (settings.capturable) {
        update_on_device(g, gradients, root, on_device);
        continue;
      }
      in_place<"_foreach_mul_.ScalarList">(session, g.states[3], numbers(g.states[3]));
      in_place<"_foreach_div_.ScalarList">(session, root, numbers(root));
      in_place<"_foreach_add_.Scalar">(session, root, kEpsilon);
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, gradients, root, numbers(root));
      in_place<"_foreach_addcdiv_.ScalarList">(session, g.parameters, g.states[0], root, numbers(root));
    }
  }

  // Lists of scalars on the device; each has a Python name until the next group binds it again.
  struct DeviceSteps {
    List numerators, mean_sizes, gradient_sizes, next_momenta, momenta;
  };

  // β1 · (1 − 0.96^exponent / 2)
  List momenta_of(const List& exponents) {
    List momenta = fresh<"_foreach_pow.ScalarAndTensor">(session, kDecayBase, exponents);
    in_place<"_foreach_mul_.Scalar">(session, momenta, -0.5);
    in_place<"_foreach_add_.Scalar">(session, momenta, 1.0);
    in_place<"_foreach_mul_.Scalar">(session, momenta, kBeta1);
    return momenta;
  }

  void update_on_device(Group& g, const List& gradients, const List& root, DeviceSteps& s) {
    {
      const List exponents = fresh<"_foreach_mul.Scalar">(session, g.steps, kMomentumDecay);
      s.momenta = momenta_of(exponents);
      in_place<"_foreach_add_.Scalar">(session, exponents, kMomentumDecay);
      s.next_momenta = momenta_of(exponents);
    }
    {
      const List correction = fresh<"_foreach_pow.ScalarAndTensor">(session, kBeta2, g.steps);
      in_place<"_foreach_sub_.Scalar">(session, correction, 1.0);
      in_place<"_foreach_neg_">(session, correction);
      in_place<"_foreach_sqrt_">(session, correction);
      in_place<"_foreach_mul_.List">(session, g.states[3], s.momenta);
      in_place<"_foreach_div_.List">(session, root, correction);
      in_place<"_foreach_add_.Scalar">(session, root, kEpsilon);
    }
    step_sizes_on_device(g, s);
    s.numerators = fresh<"_foreach_mul.List">(session, s.gradient_sizes, gradients);
    in_place<"_foreach_addcmul_.Scalar">(session, s.numerators, s.mean_sizes, g.states[0]);
    in_place<"_foreach_addcdiv_.Scalar">(session, g.parameters, s.numerators, root);
  }

  // −lr · (1 − µ) / (1 − product) and −lr · µ' / (1 − product · µ'), in the memory of the momenta.
  void step_sizes_on_device(const Group& g, DeviceSteps& s) {
    in_place<"_foreach_sub_.Scalar">(session, s.momenta, 1.0);
    in_place<"_foreach_mul_.Scalar">(session, s.momenta, settings.learning_rate);
    {
      const List rest = fresh<"_foreach_sub.Scalar">(session, g.states[3], 1.0);
      in_place<"_foreach_neg_">(session, rest);
      in_place<"_foreach_div_.List">(session, s.momenta, rest);
      s.gradient_sizes = s.momenta;
    }
    const List rest = fresh<"_foreach_mul.List">(session, g.states[3], s.next_momenta);
    in_place<"_foreach_mul_.Scalar">(session, s.next_momenta, settings.learning_rate);
    in_place<"_foreach_sub_.Scalar">(session, rest, 1.0);
    in_place<"_foreach_div_.List">(session, s.next_momenta, rest);
    s.mean_sizes = s.next_momenta;
  }

  void for_loop_step(Group& all) override {
    Names names;
    auto& [next_product, denominator, next_momentum, momentum, correction, mean, gradient] = names;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor& parameter = all.parameters[i];
      gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      mean = state.tensors[0];
      count(state);
      if (settings.capturable) correction = one_minus_power(session, kBeta2, state.step);
      gradient = decayed_gradient(session, settings, gradient, parameter);
      if (settings.capturable) {
        momentum = momentum_of(state.step);
        next_momentum = momentum_of(call<"add.Tensor">(session, state.step, 1));
        call<"mul_.Tensor">(session, state.tensors[3], momentum);
      } else {
        call<"mul_.Tensor">(session, state.tensors[3], kBeta1);
      }
      call<"lerp_.Scalar">(session, mean, gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      Tensor corrected = settings.capturable ? call<"div.Tensor">(session, state.tensors[1], correction)
                                             : call<"div.Tensor">(session, state.tensors[1], 1 - kBeta2);
      Tensor root = call<"sqrt">(session, corrected);
      corrected.reset();
      denominator = std::move(root);
      if (settings.capturable || settings.differentiable) {
        denominator = call<"add.Tensor">(session, denominator, kEpsilon);
        if (settings.capturable) {
          capturable_update(state, names);
        } else {
          differentiable_update(state, gradient, mean);
        }
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
  void differentiable_update(const ParameterState& state, Tensor& gradient, Tensor& mean) {
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

  // What the loop has names for until the next parameter's take them; those that it names first go first. Scalars where
  // the counters are on the device.
  struct Names {
    Tensor next_product, denominator, next_momentum, momentum, correction, mean, gradient;
  };

  // beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay))); `step` goes with its first use, unless it is the counter.
  Tensor momentum_of(Tensor step) {
    Tensor value = call<"mul.Tensor">(session, step, kMomentumDecay);
    step.reset();
    value = call<"pow.Scalar">(session, kDecayBase, value);
    value = call<"mul.Tensor">(session, value, 0.5);
    value = call<"rsub.Scalar">(session, value, 1.0);
    return call<"mul.Tensor">(session, value, kBeta1);
  }

  // value / (1.0 - product)
  Tensor over_rest_of(const Tensor& value, const Tensor& product) {
    const Tensor rest = call<"rsub.Scalar">(session, product, 1.0);
    return call<"div.Tensor">(session, value, rest);
  }

  // self * size, which goes before what has had the name.
  void scale(Tensor& self, Tensor size) {
    Tensor scaled = call<"mul.Tensor">(session, self, size);
    size.reset();
    self = std::move(scaled);
  }

  void capturable_update(const ParameterState& state, Names& s) {
    s.next_product = call<"mul.Tensor">(session, state.tensors[3], s.next_momentum);
    {
      Tensor size = call<"rsub.Scalar">(session, s.momentum, 1.0);
      size = call<"mul.Tensor">(session, size, -settings.learning_rate);
      size = over_rest_of(size, state.tensors[3]);
      scale(s.gradient, std::move(size));
    }
    Tensor size = call<"mul.Tensor">(session, s.next_momentum, -settings.learning_rate);
    size = over_rest_of(size, s.next_product);
    scale(s.mean, std::move(size));
  }
};

class RAdam final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kLimit = 2 / (1 - kBeta2) - 1;  ///< rho_inf: the length of the longest average

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    state.tensors[1] = kept_zeros(parameter);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List buffer;
    DeviceSteps steps;
    for (Group& g : groups) {
      count(g);
      {
        List gradients = negated_gradients(session, settings, g);
        if (settings.capturable) lengths_of_averages(g, steps);
        gradients = decayed_gradients(session, settings, g, std::move(gradients));
        in_place<"_foreach_lerp_.Scalar">(session, g.states[0], gradients, 1 - kBeta1);
        in_place<"_foreach_mul_.Scalar">(session, g.states[1], kBeta2);
        in_place<"_foreach_addcmul_.Scalar">(session, g.states[1], gradients, gradients, 1 - kBeta2);
      }
      if (settings.capturable) step_sizes_on_device(g, steps);
      buffer = fresh<"_foreach_sqrt">(session, g.states[1]);
      in_place<"_foreach_add_.Scalar">(session, buffer, kEpsilon);
      if (settings.capturable) {
        in_place<"_foreach_div_.List">(session, buffer, steps.rectified);
        in_place<"_foreach_reciprocal_">(session, buffer);
        in_place<"_foreach_add_.List">(session, buffer, steps.unrectified);
      } else {
        in_place<"_foreach_div_.ScalarList">(session, buffer, numbers(buffer));
        in_place<"_foreach_reciprocal_">(session, buffer);
        in_place<"_foreach_add_.ScalarList">(session, buffer, numbers(buffer));
      }
      in_place<"_foreach_addcmul_.Scalar">(session, g.parameters, g.states[0], buffer);
    }
  }

  // Lists of scalars on the device. `lengths` of the averages (rho_t) are `rectified` by another name at first.
  struct DeviceSteps {
    List rest, lengths, rectified, unrectified;
  };

  void lengths_of_averages(const Group& g, DeviceSteps& s) {
    s.rest = one_minus_powers(session, kBeta2, g.steps);
    s.rectified = fresh<"_foreach_pow.ScalarAndTensor">(session, kBeta2, g.steps);
    in_place<"_foreach_mul_.List">(session, s.rectified, g.steps);
    in_place<"_foreach_mul_.Scalar">(session, s.rectified, 2);
    in_place<"_foreach_div_.List">(session, s.rectified, s.rest);
    in_place<"_foreach_neg_">(session, s.rectified);
    in_place<"_foreach_add_.Scalar">(session, s.rectified, kLimit);
    s.lengths = s.rectified;
  }

  // The rectification where an average is long enough, else 0.
  List rectifications(List& lengths) {
    const List numerators = fresh<"_foreach_sub.Scalar">(session, lengths, 4);
    {
      const List others = fresh<"_foreach_sub.Scalar">(session, lengths, 2);
      in_place<"_foreach_mul_.List">(session, numerators, others);
    }
    in_place<"_foreach_mul_.Scalar">(session, numerators, kLimit);
    {
      const List denominators = fresh<"_foreach_mul.Scalar">(session, lengths, (kLimit - 4) * (kLimit - 2));
      in_place<"_foreach_div_.List">(session, numerators, denominators);
    }
    in_place<"_foreach_sqrt_">(session, numerators);
    List chosen;
    for (size_t i = 0; i < numerators.size(); ++i) {
      const Tensor mask = call<"gt.Scalar">(session, lengths[i], 5.0);
      chosen.push_back(call<"where.ScalarOther">(session, mask, numerators[i], 0.0));
    }
    return chosen;
  }

  void step_sizes_on_device(const Group& g, DeviceSteps& s) {
    List chosen = rectifications(s.lengths);
    s.lengths.clear();
    List unrectified;
    for (const Tensor& rectification : chosen) {
      const Tensor mask = call<"gt.Scalar">(session, rectification, 0);
      unrectified.push_back(call<"where.Scalar">(session, mask, 0.0, 1.0));
    }
    s.unrectified = std::move(unrectified);
    in_place<"_foreach_mul_.Scalar">(session, s.unrectified, settings.learning_rate);
    s.rest = one_minus_powers(session, kBeta1, g.steps);
    in_place<"_foreach_div_.List">(session, s.unrectified, s.rest);
    in_place<"_foreach_neg_">(session, s.unrectified);
    s.rectified = one_minus_powers(session, kBeta2, g.steps);
    in_place<"_foreach_sqrt_">(session, s.rectified);
    in_place<"_foreach_mul_.Scalar">(session, s.rectified, settings.learning_rate);
    in_place<"_foreach_mul_.List">(session, s.rectified, chosen);
    chosen.clear();
    in_place<"_foreach_neg_">(session, s.rectified);
    in_place<"_foreach_div_.List">(session, s.rectified, s.rest);
    s.rest.clear();
  }

  // A loop leaves the rectification out of the first steps, unless the device chooses.
  bool steps_alike() const override {
    if (settings.capturable) return true;
    return implementation != Implementation::for_loop || (!states.empty() && is_rectified(states[0].steps));
  }

  // The variance is rectified once enough steps have been averaged: more than 5 "effective" ones.
  static bool is_rectified(int64_t step) {
    const double decay = std::pow(kBeta2, double(step));
    return kLimit - 2 * double(step) * decay / (1 - decay) > 5;
  }

  void for_loop_step(Group& all) override {
    DeviceScalars scalars;
    Tensor corrected, gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      gradient = settings.maximize ? call<"neg">(session, all.gradients[i]) : all.gradients[i];
      count(state);
      gradient = decayed_gradient(session, settings, gradient, all.parameters[i]);
      call<"lerp_.Scalar">(session, state.tensors[0], gradient, 1 - kBeta1);
      call<"mul_.Tensor">(session, state.tensors[1], kBeta2);
      call<"addcmul_">(session, state.tensors[1], gradient, gradient, 1 - kBeta2);
      if (settings.capturable) {
        update_on_device(all.parameters[i], state, scalars);
        continue;
      }
      corrected = call<"div.Tensor">(session, state.tensors[0], 1 - kBeta1);
      Tensor update = call<"mul.Tensor">(session, corrected, settings.learning_rate);
      if (is_rectified(state.steps)) update = rectified(update, state);
      call<"add_.Tensor">(session, all.parameters[i], update, -1.0);
    }
  }

  Tensor root_of_squares(const ParameterState& state) {
    Tensor root = call<"sqrt">(session, state.tensors[1]);
    if (settings.differentiable) {
      root = call<"add.Tensor">(session, root, kEpsilon);
    } else {
      call<"add_.Tensor">(session, root, kEpsilon);
    }
    return root;
  }

  // What the loop has names for where the counters are on the device.
  struct DeviceScalars {
    Tensor length, second, update, corrected, first;  // closures see the first two, which go last
  };

  void update_on_device(const Tensor& parameter, const ParameterState& state, DeviceScalars& s) {
    s.first = one_minus_power(session, kBeta1, state.step);
    s.second = one_minus_power(session, kBeta2, state.step);
    s.corrected = call<"div.Tensor">(session, state.tensors[0], s.first);
    {
      Tensor part = call<"mul.Tensor">(session, state.step, 2);
      {
        const Tensor power = call<"pow.Scalar">(session, kBeta2, state.step);
        part = call<"mul.Tensor">(session, part, power);
      }
      part = call<"div.Tensor">(session, part, s.second);
      s.length = call<"rsub.Scalar">(session, part, kLimit);
    }
    {
      Tensor mask = call<"gt.Scalar">(session, s.length, 5.0);
      Tensor rectification = rectification_on_device(s.length);
      Tensor rate = rate_on_device(state, s.second);
      Tensor product = call<"mul.Tensor">(session, rectification, rate);
      rectification.reset();
      rate.reset();
      Tensor update = call<"where.ScalarOther">(session, mask, product, 1.0);
      mask.reset();
      product.reset();
      s.update = std::move(update);
    }
    Tensor change = call<"mul.Tensor">(session, s.corrected, settings.learning_rate);
    change = call<"mul.Tensor">(session, change, s.update);
    call<"add_.Tensor">(session, parameter, change, -1.0);
  }

  // ((rho_t - 4) * (rho_t - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho_t)) ** 0.5
  Tensor rectification_on_device(const Tensor& length) {
    Tensor value = call<"sub.Tensor">(session, length, 4);
    {
      const Tensor other = call<"sub.Tensor">(session, length, 2);
      value = call<"mul.Tensor">(session, value, other);
    }
    value = call<"mul.Tensor">(session, value, kLimit);
    {
      const Tensor denominator = call<"mul.Tensor">(session, length, (kLimit - 4) * (kLimit - 2));
      value = call<"div.Tensor">(session, value, denominator);
    }
    return call<"pow.Tensor_Scalar">(session, value, 0.5);
  }

  Tensor rate_on_device(const ParameterState& state, const Tensor& correction) {
    const Tensor root = root_of_squares(state);
    const Tensor power = call<"pow.Tensor_Scalar">(session, correction, 0.5);
    return call<"div.Tensor">(session, power, root);
  }

  // update · adaptive learning rate · rectification
  Tensor rectified(Tensor update, const ParameterState& state) {
    Tensor rate;
    {
      const Tensor root = root_of_squares(state);
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
