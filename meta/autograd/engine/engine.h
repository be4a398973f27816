#pragma once
// Running the graph backward, in the framework's order: the node made last first, AccumulateGrad as soon as
// its gradient is complete. One thread, whatever the number of devices; the trace says which streams wait.

#include "meta/autograd/graph/node.h"

namespace metaprof {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  ///< false: gradients of `inputs` are returned instead of added to .grad
  bool allow_unused =
      false;                 ///< an input that the roots do not depend on has no gradient instead of an error
  bool materialize = false;  ///< … and then zeros
};

/// Gradients of the roots with respect to `inputs`, or to all leaves if there are none given.
/// `gradients`: of the roots; an undefined one stands for ones and needs a root of one element. With
/// `accumulate` nothing is returned and .grad grows; else the i-th gradient belongs to the i-th input.
Gradients backward(Session& session, std::span<const Tensor> roots, std::span<const Tensor> gradients = {},
                   std::span<const Tensor> inputs = {}, const BackwardOptions& options = {});

/// torch.autograd.grad: gradients of the outputs with respect to the inputs; .grad is left alone.
Gradients grad(Session& session, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
               std::span<const Tensor> gradients = {}, BackwardOptions options = {});

/// Sums a gradient down to these sizes, as broadcasting would have blown it up.
Tensor sum_to(Session& session, const Tensor& gradient, SizesView sizes);
/// Gives gradients of `node` the sizes and dtype of what they are gradients of. Errors: there are more than the node has
/// edges; sizes that no broadcast explains.
void fit_gradients(Session& session, Gradients& outgoing, const Node& node);

}  // namespace metaprof
