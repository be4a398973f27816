// torch/optim/rprop.py and asgd.py, PyTorch 2.11.

#include "meta/optim/algorithm.h"

namespace metaprof {
namespace {

// State 0: previous gradient, 1: step size per element.
class Rprop final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kShrink = 0.5, kGrow = 1.2, kSmallest = 1e-6, kLargest = 50;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(settings.capturable);
    state.tensors[0] = kept_zeros(parameter);
    Scoped<Category> born_as(session.category, Category::optimizer_state);
    state.tensors[1] = call<"full_like">(session, parameter.grad(), settings.learning_rate);
  }

  // x[comparison(x)] = number, as Python writes it: the mask lives until the assignment is done.
  template <FixedString comparison>
  void assign_where(const Tensor& sign, double number) {
    const Tensor mask = call<comparison>(session, sign, 0);
    assign(sign, mask, number);
  }
  void assign(const Tensor& self, const Tensor& mask, double number) {
    call<"masked_fill_.Scalar">(session, self, mask, number);
  }

  // x.copy_(torch.where(comparison(x), number, x)): the size of the result is known without reading the mask.
  template <FixedString comparison>
  void choose(const Tensor& changed, const Tensor& sign, double compared, double number) {
    Tensor mask = call<comparison>(session, sign, compared);
    const Tensor chosen = call<"where.ScalarSelf">(session, mask, number, changed);
    mask.reset();
    call<"copy_">(session, changed, chosen);
  }

  void scale_by_sign(const Tensor& sign) {
    if (settings.capturable) {
      choose<"gt.Scalar">(sign, sign, 0, kGrow);
      choose<"lt.Scalar">(sign, sign, 0, kShrink);
      choose<"eq.Scalar">(sign, sign, 0, 1);
      return;
    }
    assign_where<"gt.Scalar">(sign, kGrow);
    assign_where<"lt.Scalar">(sign, kShrink);
    assign_where<"eq.Scalar">(sign, 1);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List gradient_signs;
    Tensor last_sign;  // the loop's variable
    List signs;
    for (Group& g : groups) {
      count(g);
      signs = fresh<"_foreach_mul.List">(session, g.gradients, g.states[0]);
      if (settings.maximize) in_place<"_foreach_neg_">(session, signs);
      in_place<"_foreach_copy_">(session, g.states[0], g.gradients);
      if (settings.maximize) in_place<"_foreach_neg_">(session, g.states[0]);
      in_place<"_foreach_sign_">(session, signs);
      for (const Tensor& sign : signs) {
        last_sign = sign;
        scale_by_sign(sign);
      }
      in_place<"_foreach_mul_.List">(session, g.states[1], signs);
      for (const Tensor& step_size : g.states[1]) call<"clamp_">(session, step_size, kSmallest, kLargest);
      for (size_t i = 0; i < signs.size(); ++i) choose<"eq.Scalar">(g.states[0][i], signs[i], kShrink, 0);
      signs.clear();
      List fresh_signs;
      for (const Tensor& gradient : g.states[0]) fresh_signs.push_back(call<"sign">(session, gradient));
      gradient_signs = std::move(fresh_signs);
      in_place<"_foreach_addcmul_.Scalar">(session, g.parameters, gradient_signs, g.states[1], -1);
    }
  }

  void for_loop_step(Group& all) override {
    Tensor sign, gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      gradient = all.gradients[i];
      if (settings.maximize) gradient = call<"neg">(session, gradient);
      count(state);
      {
        Tensor before = settings.differentiable ? call<"clone">(session, state.tensors[0]) : state.tensors[0];
        Tensor product = call<"mul.Tensor">(session, gradient, before);
        before.reset();
        Tensor fresh_sign = call<"sign">(session, product);
        product.reset();
        sign = std::move(fresh_sign);
      }
      scale_by_sign(sign);
      call<"mul_.Tensor">(session, state.tensors[1], sign);
      call<"clamp_">(session, state.tensors[1], kSmallest, kLargest);
      gradient = call<"clone">(session, gradient, MemoryFormat::preserve);
      if (settings.capturable) {
        choose<"eq.Scalar">(gradient, sign, kShrink, 0);
      } else {
        const Tensor mask = call<"eq.Scalar">(session, sign, kShrink);
        assign(gradient, mask, 0);
      }
      {
        const Tensor direction = call<"sign">(session, gradient);
        call<"addcmul_">(session, all.parameters[i], direction, state.tensors[1], -1);
      }
      call<"copy_">(session, state.tensors[0], gradient);
    }
  }
};

// State 0: average of the parameter, 1: "eta", 2: "mu", both scalars on the device.
class Asgd final : public Algorithm {
 public:
  using Algorithm::Algorithm;

 private:
  static constexpr double kLambda = 1e-4, kStart = 1e6, kPower = 0.75;

  void make_state(const Tensor& parameter, ParameterState& state) override {
    state.step = counter(true);
    {
      const Tensor made = on_device(settings.learning_rate);
      Scoped<Category> born_as(session.category, Category::optimizer_state);
      state.tensors[1] = call<"detach">(session, call<"clone">(session, made));
    }
    state.tensors[2] = counter(true);
    state.tensors[0] = kept_zeros(parameter);
  }

  // torch.as_tensor(number, device=…): made on the host, copied.
  Tensor on_device(double) {
    const Tensor host = session.empty({}, DType::f32, kHost);
    return call<"_to_copy">(session, host, DType::f32, Value(), session.device);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List new_rates, new_weights, gradients;  // what Python names first goes first
    for (Group& g : groups) {
      gradients = settings.maximize ? fresh<"_foreach_neg">(session, g.gradients) : g.gradients;
      count(g);
      {
        const List decayed = decayed_gradients(g, gradients);
        in_place<"_foreach_addcmul_.Scalar">(session, g.parameters, decayed, g.states[1], -1);
      }
      {
        const List distance = fresh<"_foreach_sub.List">(session, g.parameters, g.states[0]);
        in_place<"_foreach_addcmul_.Scalar">(session, g.states[0], distance, g.states[2]);
      }
      if (settings.capturable) {
        update_on_device(g, new_rates);
        continue;
      }
      List rates, weights;
      for (const Tensor& step : g.steps) rates.push_back(new_rate(step));
      new_rates = std::move(rates);
      for (size_t i = 0; i < g.steps.size(); ++i) weights.push_back(on_device(1));
      new_weights = std::move(weights);
      in_place<"_foreach_copy_">(session, g.states[1], new_rates);
      in_place<"_foreach_copy_">(session, g.states[2], new_weights);
    }
  }

  void update_on_device(const Group& g, List& new_rates) {
    {
      const List new_weights = fresh<"_foreach_sub.Scalar">(session, g.steps, kStart);
      in_place<"_foreach_maximum_.Scalar">(session, new_weights, 1.0);
      in_place<"_foreach_reciprocal_">(session, new_weights);
      in_place<"_foreach_copy_">(session, g.states[2], new_weights);
    }
    new_rates = fresh<"_foreach_mul.Scalar">(session, g.steps, kLambda);
    in_place<"_foreach_mul_.Scalar">(session, new_rates, settings.learning_rate);
    in_place<"_foreach_add_.Scalar">(session, new_rates, 1);
    in_place<"_foreach_pow_.Scalar">(session, new_rates, kPower);
    in_place<"_foreach_reciprocal_">(session, new_rates);
    in_place<"_foreach_mul_.Scalar">(session, new_rates, settings.learning_rate);
    in_place<"_foreach_copy_">(session, g.states[1], new_rates);
  }

  // With λ·parameter, and the decay where there is one: added to a negated list in place.
  List decayed_gradients(const Group& g, const List& gradients) {
    if (settings.weight_decay == 0)
      return fresh<"_foreach_add.List">(session, gradients, g.parameters, kLambda);
    List decayed = gradients;
    if (settings.maximize) {
      in_place<"_foreach_add_.List">(session, gradients, g.parameters, settings.weight_decay);
    } else {
      decayed = fresh<"_foreach_add.List">(session, gradients, g.parameters, settings.weight_decay);
    }
    in_place<"_foreach_add_.List">(session, decayed, g.parameters, kLambda);
    return decayed;
  }

  // lr / (1 + λ·lr·step)^α with the step counter on the device: a chain of scalars there.
  Tensor new_rate(const Tensor& step) {
    Tensor value = call<"mul.Tensor">(session, step, kLambda * settings.learning_rate);
    value = call<"add.Tensor">(session, value, 1);
    value = call<"pow.Tensor_Scalar">(session, value, kPower);
    return quotient(settings.learning_rate, value);
  }

  // number / tensor, as Python divides.
  Tensor quotient(double number, const Tensor& divisor) {
    const Tensor reciprocal = call<"reciprocal">(session, divisor);
    return call<"mul.Tensor">(session, reciprocal, number);
  }

  // Where nothing is read from the device: rates and weights are scalars there.
  void update_by_scalars(const ParameterState& state, const Tensor& parameter, const Tensor& gradient) {
    const Tensor &average = state.tensors[0], &rate = state.tensors[1], &weight = state.tensors[2];
    {
      Tensor factor = call<"mul.Tensor">(session, rate, kLambda);
      factor = call<"rsub.Scalar">(session, factor, 1);
      call<"mul_.Tensor">(session, parameter, factor);
    }
    call<"addcmul_">(session, parameter, gradient, rate, -1);
    {
      const Tensor distance = call<"sub.Tensor">(session, parameter, average);
      call<"mul_.Tensor">(session, distance, weight);
      call<"add_.Tensor">(session, average, distance);
    }
    call<"copy_">(session, rate, new_rate(state.step));
    Tensor beyond = call<"sub.Tensor">(session, state.step, kStart);
    {
      const Tensor ones = call<"ones_like">(session, state.step);
      beyond = call<"maximum">(session, beyond, ones);
    }
    const Tensor new_weight = quotient(1, beyond);
    beyond.reset();
    call<"copy_">(session, weight, new_weight);
  }

  void for_loop_step(Group& all) override {
    Tensor gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor &parameter = all.parameters[i], &average = state.tensors[0];
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      count(state);
      gradient = with_decay(session, settings, gradient, parameter);
      if (settings.capturable) {
        update_by_scalars(state, parameter, gradient);
        continue;
      }
      call<"mul_.Tensor">(session, parameter, 1 - kLambda * settings.learning_rate);
      call<"add_.Tensor">(session, parameter, gradient, -settings.learning_rate);
      // Averaging begins after kStart steps; until then the weight is 1 and the average is the parameter.
      if (double(state.steps) > kStart) {
        const Tensor distance = call<"sub.Tensor">(session, parameter, average);
        call<"mul_.Tensor">(session, distance, state.tensors[2]);
        call<"add_.Tensor">(session, average, distance);
      } else {
        call<"copy_">(session, average, parameter);
      }
      for (size_t k : {1, 2}) call<"copy_">(session, state.tensors[k], session.empty({}, DType::f32, kHost));
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_rprop(Session& session, const std::vector<Tensor>& parameters,
                                      Settings settings, Implementation implementation) {
  return std::make_unique<Rprop>(session, parameters, settings, implementation);
}
std::unique_ptr<Algorithm> make_asgd(Session& session, const std::vector<Tensor>& parameters,
                                     Settings settings, Implementation implementation) {
  return std::make_unique<Asgd>(session, parameters, settings, implementation);
}

}  // namespace metaprof
