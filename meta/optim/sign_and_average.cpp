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
    state.step = counter(false);
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

  void scale_by_sign(const Tensor& sign) {
    assign_where<"gt.Scalar">(sign, kGrow);
    assign_where<"lt.Scalar">(sign, kShrink);
    assign_where<"eq.Scalar">(sign, 1);
  }

  void foreach_step(std::vector<Group>& groups) override {
    List gradient_signs, signs;
    for (Group& g : groups) {
      count(g);
      signs = fresh<"_foreach_mul.List">(session, g.gradients, g.states[0]);
      if (settings.maximize) in_place<"_foreach_neg_">(session, signs);
      in_place<"_foreach_copy_">(session, g.states[0], g.gradients);
      if (settings.maximize) in_place<"_foreach_neg_">(session, g.states[0]);
      in_place<"_foreach_sign_">(session, signs);
      for (const Tensor& sign : signs) scale_by_sign(sign);
      in_place<"_foreach_mul_.List">(session, g.states[1], signs);
      for (const Tensor& step_size : g.states[1]) call<"clamp_">(session, step_size, kSmallest, kLargest);
      for (size_t i = 0; i < signs.size(); ++i) {
        Tensor mask = call<"eq.Scalar">(session, signs[i], kShrink);
        const Tensor kept = call<"where.ScalarSelf">(session, mask, 0, g.states[0][i]);
        mask.reset();
        call<"copy_">(session, g.states[0][i], kept);
      }
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
      {
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
  static constexpr double kLambda = 1e-4, kStart = 1e6;

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
    List gradients, new_rates, new_weights;
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
      List rates, weights;
      for (const Tensor& step : g.steps) rates.push_back(new_rate(step));
      new_rates = std::move(rates);
      for (size_t i = 0; i < g.steps.size(); ++i) weights.push_back(on_device(1));
      new_weights = std::move(weights);
      in_place<"_foreach_copy_">(session, g.states[1], new_rates);
      in_place<"_foreach_copy_">(session, g.states[2], new_weights);
    }
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
    value = call<"pow.Tensor_Scalar">(session, value, 0.75);
    value = call<"reciprocal">(session, value);
    return call<"mul.Tensor">(session, value, settings.learning_rate);
  }

  void for_loop_step(Group& all) override {
    Tensor gradient;
    for (size_t i = 0; i < all.parameters.size(); ++i) {
      ParameterState& state = *all.owners[i];
      const Tensor &parameter = all.parameters[i], &average = state.tensors[0];
      gradient = all.gradients[i];  // the last one goes before a new sum with the decay is made
      gradient = with_decay(session, settings, gradient, parameter);
      count(state);
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
