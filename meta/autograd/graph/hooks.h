#pragma once
// Functions of the user that run during backward. Per node, in this order: hooks on the tensors that it made
// (in order of registration, `retain_grad` last), hooks before the node, the node, hooks after it; for a
// leaf: its tensor hooks, then the accumulation, then its post-accumulate-grad hooks.

#include "meta/autograd/graph/node.h"

namespace metaprof {

/// Takes a hook out again. The hook stays if the handle goes.
class HookHandle {
 public:
  template <class Function>
  explicit HookHandle(const std::shared_ptr<Function>& hook)
      : remove_([weak = std::weak_ptr<Function>(hook)] {
          if (auto alive = weak.lock()) *alive = nullptr;
        }) {}
  /// The hook runs no more, and what it held is let go of.
  void remove() { remove_(); }

 private:
  std::function<void()> remove_;
};

/// The gradient of this tensor as it is now: a later in-place write does not move the hook.
HookHandle register_hook(const Tensor& tensor, GradientHook hook);
HookHandle register_pre_hook(Node& node, NodePreHook hook);
HookHandle register_post_hook(Node& node, NodePostHook hook);
/// After .grad of a leaf was made or has grown.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, AccumulatedHook hook);

/// .grad of a tensor that is no leaf will be kept: a copy. Follows the tensor through in-place writes.
void retain_grad(const Tensor& tensor);

}  // namespace metaprof
