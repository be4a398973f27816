#include "meta/autograd/graph/run_hooks.h"

#include "core/error.h"

namespace metaprof {
namespace {

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

}  // namespace

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
