#include "meta/autograd/graph/saved_tensor_hooks.h"

#include "core/error.h"

namespace metaprof {

SavedTensorHooksScope::SavedTensorHooksScope(Session& session, std::shared_ptr<SavedTensorHooks> hooks)
    : session_(session) {
  AutogradState& state = autograd_state(session);
  if (!state.saved_tensor_hooks_disabled.empty())
    fail("saved tensors cannot be packed by hooks here: {}", state.saved_tensor_hooks_disabled);
  state.saved_tensor_hooks.push_back(std::move(hooks));
}

SavedTensorHooksScope::~SavedTensorHooksScope() { autograd_state(session_).saved_tensor_hooks.pop_back(); }

SavedTensorHooksDisabled::SavedTensorHooksDisabled(Session& session, std::string reason) : session_(session) {
  AutogradState& state = autograd_state(session);
  if (!state.saved_tensor_hooks.empty())
    fail("hooks on saved tensors cannot be disabled while there are some: {}", reason);
  before_ = std::exchange(state.saved_tensor_hooks_disabled, std::move(reason));
}

SavedTensorHooksDisabled::~SavedTensorHooksDisabled() {
  autograd_state(session_).saved_tensor_hooks_disabled = std::move(before_);
}

namespace {

// A tensor in host memory that remembers where it was.
struct OnHost final : Counted {
  OnHost(Tensor copy, Device from) : copy(std::move(copy)), from(from) {}
  Tensor copy;
  Device from;
};

}  // namespace

// torch/autograd/graph.py, save_on_cpu.
std::shared_ptr<SavedTensorHooks> save_on_host(Session& session, bool pinned) {
  auto hooks = std::make_shared<SavedTensorHooks>();
  hooks->pack = [&session, pinned](const Tensor& tensor) -> Ref<Counted> {
    if (!pinned) {
      Tensor copy =
          tensor.device() == kHost ? tensor : call<"_to_copy">(session, tensor, Value(), Value(), kHost);
      return make<OnHost>(std::move(copy), tensor.device());
    }
    Tensor copy =
        call<"empty.memory_format">(session, tensor.sizes(), tensor.dtype(), Value(), kHost, pinned);
    call<"copy_">(session, copy, tensor);
    return make<OnHost>(std::move(copy), tensor.device());
  };
  hooks->unpack = [&session, pinned](Counted& packed) -> Tensor {
    const auto& kept = static_cast<const OnHost&>(packed);
    if (kept.copy.device() == kept.from) return kept.copy;
    return call<"_to_copy">(session, kept.copy, Value(), Value(), kept.from, Value(), pinned);
  };
  return hooks;
}

namespace {

// A tensor as another type, which remembers the first one.
struct Packed final : Counted {
  Packed(Tensor tensor, DType from) : tensor(std::move(tensor)), from(from) {}
  Tensor tensor;
  DType from;
};

}  // namespace

std::shared_ptr<SavedTensorHooks> pack_as(Session& session, DType dtype) {
  auto hooks = std::make_shared<SavedTensorHooks>();
  hooks->pack = [&session, dtype](const Tensor& tensor) -> Ref<Counted> {
    const bool changes = is_floating(tensor.dtype()) && tensor.dtype() != dtype;
    return make<Packed>(changes ? call<"_to_copy">(session, tensor, dtype) : tensor, tensor.dtype());
  };
  hooks->unpack = [&session](Counted& packed) -> Tensor {
    const auto& kept = static_cast<const Packed&>(packed);
    return kept.tensor.dtype() == kept.from ? kept.tensor : call<"_to_copy">(session, kept.tensor, kept.from);
  };
  return hooks;
}

}  // namespace metaprof
