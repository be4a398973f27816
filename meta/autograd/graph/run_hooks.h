#pragma once
// Hooks as the engine runs them, in the order that hooks.h promises.

#include "meta/autograd/graph/node.h"

namespace metaprof {

/// What is registered on a leaf; outlives its accumulator.
struct LeafHooks final : Counted {
  HookList<GradientHook> gradient;
  HookList<AccumulatedHook> accumulated;
};
/// Null if there are none.
LeafHooks* leaf_hooks(const TensorImpl& leaf);

/// Hooks on tensors, then those before the node.
void run_hooks_on_tensors(Node& node, Gradients& incoming);
void run_hooks_before(Node& node, Gradients& incoming);
void run_hooks_after(Node& node, Gradients& outgoing, const Gradients& incoming);
void run_hooks_after_accumulation(const Tensor& leaf);

/// `tensor` had this grad_fn and has got a new one: its retain_grad goes there.
void move_retain_grad(const Tensor& tensor, Node& from);

}  // namespace metaprof
