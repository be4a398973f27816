#include "meta/optim/algorithm.h"

#include "core/error.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {

namespace {

void check_layout(const Tensor& gradient, SparseGradients sparse) {
  if (!gradient.is_sparse() && sparse == SparseGradients::expected)
    fail(
        "this optimizer does not take dense gradients, in the framework neither: take --optimizer adam, or "
        "make "
        "every embedding with sparse=True");
  if (gradient.is_sparse() && sparse == SparseGradients::refused)
    fail(
        "this optimizer does not take sparse gradients, in the framework neither: take --optimizer sgd, "
        "adagrad or "
        "sparse-adam, or make the embedding with sparse=False");
}

}  // namespace

List with_decay(Session& session, const Settings& settings, const Group& g) {
  List gradients = g.gradients;
  if (settings.maximize) gradients = fresh<"_foreach_neg">(session, gradients);
  if (settings.weight_decay == 0) return gradients;
  if (settings.maximize) {
    in_place<"_foreach_add_.List">(session, gradients, g.parameters, settings.weight_decay);
    return gradients;
  }
  return fresh<"_foreach_add.List">(session, gradients, g.parameters, settings.weight_decay);
}

Tensor with_decay(Session& session, const Settings& settings, const Tensor& gradient,
                  const Tensor& parameter) {
  Tensor out = settings.maximize ? negative(session, gradient) : gradient;
  if (settings.weight_decay != 0) out = call<"add.Tensor">(session, out, parameter, settings.weight_decay);
  return out;
}

void Algorithm::step() {
  std::vector<Group> groups;
  Group all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    check_layout(gradient, sparse_gradients());
    ParameterState& state = states[i];
    if (!state.made) make_state(parameter, state);
    state.made = true;
    ++state.steps;
    Group* group = &all;
    if (implementation != Implementation::for_loop) {
      group = nullptr;
      for (Group& g : groups)
        if (g.parameters[0].dtype() == parameter.dtype()) group = &g;
      if (!group) group = &groups.emplace_back();
    }
    group->parameters.push_back(parameter);
    group->gradients.push_back(gradient);
    if (state.step.defined()) group->steps.push_back(state.step);
    for (size_t k = 0; k < state.tensors.size(); ++k)
      if (state.tensors[k].defined()) group->states[k].push_back(state.tensors[k]);
    group->owners.push_back(&state);
  }
  switch (implementation) {
    case Implementation::foreach: foreach_step(groups); break;
    case Implementation::for_loop: for_loop_step(all); break;
    case Implementation::fused: fused_step(groups); break;
  }
  name_new_states();
}

void Algorithm::name_new_states() {
  auto& storages = session.trace.storages;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (states[i].steps != 1) continue;
    const uint32_t name = storages[parameters[i]->storage->id].name;
    for (const Tensor& tensor : states[i].tensors)
      if (tensor.defined() && storages[tensor->storage->id].name == 0)
        storages[tensor->storage->id].name = name;
  }
}

void Algorithm::fused_step(std::vector<Group>&) { fail("this optimizer has no fused implementation"); }

Tensor Algorithm::counter(bool on_device) {
  Scoped<Category> born_as(session.category, Category::optimizer_state);
  if (on_device) return session.empty({}, DType::f32);
  return session.empty({}, DType::f32, kHost);
}

Tensor Algorithm::kept_zeros(const Tensor& like) {
  Scoped<Category> born_as(session.category, Category::optimizer_state);
  return call<"zeros_like">(session, like, Value(), Value(), Value(), Value(), MemoryFormat::preserve);
}

void Algorithm::count(const Group& group) {
  if (group.steps[0].is_cuda()) return in_place<"_foreach_add_.Scalar">(session, group.steps, 1);
  const Tensor one = session.empty({}, DType::f32, kHost);
  in_place<"_foreach_add_.Tensor">(session, group.steps, one, 1.0);
}

void Algorithm::count(ParameterState& state) { call<"add_.Tensor">(session, state.step, 1); }

}  // namespace metaprof
