#pragma once
// The node at the end of every path: adds the gradient that arrives to a leaf's .grad.

#include "meta/autograd/graph/node.h"

namespace metaprof {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& variable);
  ~AccumulateGrad() override;
  Gradients apply(Gradients& incoming) override;
  const TensorImpl* leaf() const override { return variable.get(); }

  const Tensor variable;
};

/// The leaf's accumulator; made when first asked for, one at a time.
Ref<Node> accumulator_of(const Tensor& leaf);

/// Same strides as the variable where that is dense, else row-major (sizes of 1 ignored).
bool obeys_layout_contract(const Tensor& gradient, const Tensor& variable);
/// A copy that obeys it.
Tensor clone_obeying_contract(Session& session, const Tensor& gradient, const Tensor& variable);

}  // namespace metaprof
