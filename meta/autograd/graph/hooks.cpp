#include "meta/autograd/graph/hooks.h"

#include "core/error.h"
#include "meta/autograd/graph/run_hooks.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {
namespace {

LeafHooks& ensure_leaf_hooks(const Tensor& leaf) {
  TensorExtra& extra = leaf->ensure_extra();
  if (!extra.hooks) extra.hooks = make<LeafHooks>();
  return static_cast<LeafHooks&>(*extra.hooks);
}

// Only looks: the tensor may be gone by then, which its geometry survives.
GradientHook keeper_of(const Tensor& tensor) {
  return [weak = Geometry(tensor)](const Tensor& gradient) -> Tensor {
    if (weak->use_count() == 0 || !gradient.defined()) return {};
    const Tensor alive(const_cast<TensorImpl*>(weak.get()));
    Session& session = session_of(alive);
    Ref<TensorImpl>& grad = alive->ensure_extra().grad;
    grad = grad ? call<"add.Tensor">(session, Tensor(grad), gradient)
                : call<"clone">(session, gradient, MemoryFormat::contiguous);
    return {};
  };
}

}  // namespace

HookHandle register_hook(const Tensor& tensor, GradientHook hook) {
  if (!tensor.requires_grad()) fail("a hook needs a tensor that requires grad, got {}", describe(tensor));
  auto kept = std::make_shared<GradientHook>(std::move(hook));
  const Edge edge = gradient_edge(tensor);
  if (tensor.is_leaf()) {
    ensure_leaf_hooks(tensor).gradient.push_back(kept);
  } else {
    edge.node->ensure_hooks().gradient.push_back({edge.input_nr, kept});
  }
  return HookHandle(kept);
}

HookHandle register_pre_hook(Node& node, NodePreHook hook) {
  return HookHandle(node.ensure_hooks().before.emplace_back(std::make_shared<NodePreHook>(std::move(hook))));
}

HookHandle register_post_hook(Node& node, NodePostHook hook) {
  return HookHandle(node.ensure_hooks().after.emplace_back(std::make_shared<NodePostHook>(std::move(hook))));
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, AccumulatedHook hook) {
  if (!leaf.is_leaf() || !leaf.requires_grad())
    fail("a post-accumulate-grad hook needs a leaf that requires grad, got {}", describe(leaf));
  return HookHandle(
      ensure_leaf_hooks(leaf).accumulated.emplace_back(std::make_shared<AccumulatedHook>(std::move(hook))));
}

void retain_grad(const Tensor& tensor) {
  if (!tensor.requires_grad())
    fail("retain_grad needs a tensor that requires grad, got {}", describe(tensor));
  if (tensor.is_leaf() || tensor->ensure_extra().retains_grad) return;
  const Edge edge = gradient_edge(tensor);
  tensor->extra->retains_grad = true;
  edge.node->ensure_hooks().retain.push_back(
      {edge.input_nr, std::make_shared<GradientHook>(keeper_of(tensor)), tensor.get()});
}

}  // namespace metaprof
