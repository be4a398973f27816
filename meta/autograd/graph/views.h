#pragma once
// Views and in-place operators: a write through a view rewrites the history of its base.

#include "meta/autograd/graph/node.h"

namespace metaprof {

/// Errors for in-place writes: to several elements at one place, to tensors of inference mode; and, where
/// `records` (the write is to be differentiated), to a leaf, a view of a leaf, one of several views, a view
/// of no_grad mode.
void check_in_place(const Call& call, const Tensor& self, bool records);

/// Makes `node` the history of a tensor that was just written in place; of its base, too, if it is a view.
void rebase_history(const Tensor& self, Ref<Node> node);

/// Gives a view a new grad_fn if its base was written in place since the view was made.
void refresh_view_history(const Tensor& view);

/// Where the gradient of a tensor that requires grad goes: its grad_fn, which is first refreshed if it is a view, or
/// a leaf's (single) AccumulateGrad.
Edge gradient_edge(const Tensor& tensor);

/// Gives a tensor other sizes and strides in place. Nodes that were made before go on seeing the old ones.
void change_geometry(const Tensor& self, SizesView sizes, SizesView strides, int64_t offset);

/// Backward of a write through a view: splits the gradient of the base into that of the written part, which
/// goes through the write's own node, and that of the rest.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write);
  Gradients apply(Gradients& incoming) override;
  void release_variables() override {
    write_->release_variables();
    released_ = true;
  }

 private:
  Sizes view_sizes_, view_strides_;
  int64_t view_offset_;
  Ref<Node> write_;
  bool released_ = false;  // then it cannot run again, whether or not something was saved
};

}  // namespace metaprof
