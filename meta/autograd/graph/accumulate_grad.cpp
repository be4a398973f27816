#include "meta/autograd/graph/accumulate_grad.h"

#include <algorithm>

#include "meta/autograd/graph/run_hooks.h"

namespace metaprof {

AccumulateGrad::AccumulateGrad(const Tensor& variable)
    : Node(session_of(variable), "AccumulateGrad", 0, kFirst), variable(variable) {
  add_output(variable);
}

AccumulateGrad::~AccumulateGrad() {
  if (variable->extra) variable->extra->accumulator = nullptr;
}

Ref<Node> accumulator_of(const Tensor& leaf) {
  TensorExtra& extra = leaf->ensure_extra();
  if (extra.accumulator) return Ref<Node>(static_cast<Node*>(extra.accumulator));
  Ref<Node> node = make<AccumulateGrad>(leaf);
  extra.accumulator = node.get();
  return node;
}

bool obeys_layout_contract(const Tensor& gradient, const Tensor& variable) {
  if (!variable->dense) return gradient->contiguous;
  for (size_t d = 0; d < gradient.sizes().size(); ++d)
    if (gradient.sizes()[d] != 1 && gradient.strides()[d] != variable.strides()[d]) return false;
  return true;
}

Tensor clone_obeying_contract(Session& session, const Tensor& gradient, const Tensor& variable) {
  if (!variable->dense) return call<"clone">(session, gradient, MemoryFormat::contiguous);
  Tensor copy = call<"new_empty_strided">(session, gradient, variable.sizes(), variable.strides());
  call<"copy_">(session, copy, gradient);
  return copy;
}

namespace {

// A sparse gradient whose parts are contiguous and that nobody else holds is taken over, in new handles to its parts
// (torch/csrc/autograd/functions/accumulate_grad.h); else its parts are copied, the last one first, as arguments of a call are
// made (copy_into_sparse of aten/src/ATen/native/sparse/SparseTensor.cpp).
Tensor own_sparse(Session& session, const Tensor& gradient, bool sole) {
  Tensor own(new TensorImpl(gradient.sizes(), gradient.strides(), gradient.dtype(), gradient.device()));
  own->layout = gradient->layout;
  own->storage = gradient->storage;
  own->ensure_extra().coalesced = gradient->extra->coalesced;
  const BelowAutograd below(session);
  const auto& parts = gradient->extra->parts;
  const bool steal =
      sole && std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->contiguous; });
  own->extra->parts.resize(parts.size());
  for (size_t i = parts.size(); i-- > 0;)
    own->extra->parts[i] = steal ? alias(parts[i]) : call<"clone">(session, Tensor(parts[i]));
  return own;
}

// From here on the storage is a gradient, and has the name of its parameter.
void note_gradient(Session& session, const Storage& gradient, const Tensor& variable) {
  session.categorise(gradient, Category::gradient);
  auto& storages = session.trace.storages;
  if (storages[gradient.id].name == 0) storages[gradient.id].name = storages[variable->storage->id].name;
}

}  // namespace

Gradients AccumulateGrad::apply(Gradients& incoming) {
  Tensor& gradient = incoming[0];
  if (!gradient.defined() || !variable->requires_grad) return {};
  TensorExtra& extra = variable->ensure_extra();
  const bool grad_mode = session.modes.grad;
  const uint32_t expected_owners = 1 + (hooks && !hooks->after.empty());
  auto become = [&](const Tensor& value) {
    extra.grad = value;
    if (!value.is_sparse()) return note_gradient(session, *value->storage, variable);
    for (const Ref<TensorImpl>& part : value->extra->parts) note_gradient(session, *part->storage, variable);
  };
  if (!extra.grad) {
    const bool sole = !grad_mode && gradient->use_count() <= expected_owners;
    if (gradient.is_sparse()) {
      become(own_sparse(session, gradient, sole && gradient->layout == Layout::sparse));
    } else if (sole && obeys_layout_contract(gradient, variable)) {
      become(alias(gradient));
    } else {
      become(clone_obeying_contract(session, gradient, variable));
    }
  } else if (extra.grad->layout == Layout::sparse && !gradient.is_sparse()) {
    become(call<"add.Tensor">(session, gradient, Tensor(extra.grad)));  // what is dense comes first
  } else if (!grad_mode) {
    call<"add_.Tensor">(session, Tensor(extra.grad), gradient);
  } else {
    become(call<"add.Tensor">(session, Tensor(extra.grad), gradient));
  }
  run_hooks_after_accumulation(variable);
  return {};
}

}  // namespace metaprof
