#include "meta/autograd/hooks.h"

#include "core/error.h"

namespace metaprof {
namespace {

LeafHooks& ensure_leaf_hooks(const Tensor& leaf) {
  TensorExtra& extra = leaf->ensure_extra();
  if (!extra.hooks) extra.hooks = make<LeafHooks>();
  return static_cast<LeafHooks&>(*extra.hooks);
}

// Called through a copy: a hook may remove itself.
void replace_gradient(const Node& node, const std::shared_ptr<GradientHook>& hook, Tensor& gradient) {
  const GradientHook function = *hook;
  if (!function) return;
  Tensor replaced = function(gradient);
  if (!replaced.defined()) return;
  if (gradient.defined() && replaced.sizes() != gradient.sizes())
    fail("{}: a hook returned a gradient of other sizes: {} instead of {}", node.name(),
         to_string(SizesView(replaced.sizes())), to_string(SizesView(gradient.sizes())));
  gradient = std::move(replaced);
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

void move_retain_grad(const Tensor& tensor, Node& from) {
  if (!from.hooks || !tensor->grad_fn) return;
  auto& hooks = from.hooks->retain;
  for (size_t i = hooks.size(); i-- > 0;) {
    if (hooks[i].tensor != tensor.get()) continue;
    grad_fn(tensor)->ensure_hooks().retain.push_back({tensor->output_nr, hooks[i].function, tensor.get()});
    hooks.erase(hooks.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

LeafHooks* leaf_hooks(const TensorImpl& leaf) {
  return leaf.extra ? static_cast<LeafHooks*>(leaf.extra->hooks.get()) : nullptr;
}

void run_hooks_on_tensors(Node& node, Gradients& incoming) {
  if (const TensorImpl* leaf = node.leaf()) {
    const LeafHooks* hooks = leaf_hooks(*leaf);
    for (size_t i = 0; hooks && i < hooks->gradient.size(); ++i)
      replace_gradient(node, hooks->gradient[i], incoming[0]);
  }
  if (!node.hooks) return;
  for (size_t i = 0; i < node.hooks->gradient.size(); ++i) {
    const NodeHooks::OfTensor hook = node.hooks->gradient[i];
    replace_gradient(node, hook.function, incoming[hook.output_nr]);
  }
  for (const NodeHooks::OfTensor& hook : node.hooks->retain) (*hook.function)(incoming[hook.output_nr]);
}

void run_hooks_before(Node& node, Gradients& incoming) {
  if (!node.hooks) return;
  for (size_t i = 0; i < node.hooks->before.size(); ++i)
    if (const NodePreHook hook = *node.hooks->before[i]) hook(incoming);
}

void run_hooks_after(Node& node, Gradients& outgoing, const Gradients& incoming) {
  for (size_t i = 0; i < node.hooks->after.size(); ++i)
    if (const NodePostHook hook = *node.hooks->after[i]) hook(outgoing, incoming);
}

void run_hooks_after_accumulation(const Tensor& leaf) {
  const LeafHooks* hooks = leaf_hooks(*leaf);
  for (size_t i = 0; hooks && i < hooks->accumulated.size(); ++i)
    if (const AccumulatedHook hook = *hooks->accumulated[i]) hook(leaf);
}

}  // namespace metaprof
