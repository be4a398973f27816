#include "meta/autograd/views.h"

namespace metaprof {

void check_in_place(const Call& call, const Tensor& self) {
  if (!call.session.modes.grad || !self.requires_grad()) return;
  if (self.is_leaf() && !self->base) call.error("a leaf that requires grad cannot be written in place");
  if (!self->base) return;
  const Tensor base(self->base);
  if (base.requires_grad() && base.is_leaf())
    call.error("a view of a leaf that requires grad cannot be written in place");
  if (self->view_origin == ViewOrigin::multi_output)
    call.error(
        "the output of a function that returns several views cannot be written in place: use its "
        "out-of-place form");
  if (self->view_origin == ViewOrigin::no_grad)
    call.error("a view that was made in no_grad mode cannot be written in place with grad mode on");
}

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write)
    : Node(base->storage->session(), "CopySlices", 0),
      view_sizes_(view.sizes()),
      view_strides_(view.strides()),
      view_offset_(view->offset - base->offset),
      write_(std::move(write)) {
  add_output(base);
  add_next(gradient_edge(base));
  for (size_t i = 1; i < write_->next.size(); ++i) add_next(write_->next[i]);
  record_edges();
}

Gradients CopySlices::apply(Gradients& incoming) {
  Gradients outgoing;
  outgoing.resize(next.size());
  const Tensor& gradient = incoming[0];
  if (!gradient.defined()) return outgoing;
  // torch/csrc/autograd/functions/tensor.cpp: the base's gradient is copied, the slice of the copy is cloned
  // for the write's formula, and what comes out replaces the slice.
  const Geometry& base = metadata[0];
  Tensor result = call<"new_empty_strided">(session, gradient, base->sizes, base->strides);
  call<"copy_">(session, result, gradient);
  Tensor slice =
      call<"as_strided">(session, result, view_sizes_, view_strides_, result->offset + view_offset_);
  Gradients inner;
  inner.push_back(call<"clone">(session, slice, MemoryFormat::contiguous));
  if (next[0].valid() && !write_->next.empty())
    write_->next[0] = next[0];  // asked for by what the base's edge wants
  Gradients gradients = write_->apply(inner);
  inner.clear();
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!next[i].valid()) continue;
    if (i > 0) {
      outgoing[i] = std::move(gradients[i]);
    } else {
      if (gradients[0].defined()) {
        call<"copy_">(session, slice, gradients[0]);
      } else {
        call<"zero_">(session, slice);
      }
      outgoing[0] = result;
    }
  }
  return outgoing;
}

void rebase_history(const Tensor& self, Ref<Node> node) {
  if (!self->base) {
    node->add_output(self);
    set_gradient_edge(self, {std::move(node), 0});
    return;
  }
  Tensor base(self->base);
  node->add_output(self);
  Ref<Node> slices = make<CopySlices>(base, self, std::move(node));
  set_gradient_edge(base, {std::move(slices), 0});
  refresh_view_history(self);
}

void refresh_view_history(const Tensor& view) {
  if (!view->base || view->history_version == view->storage->version) return;
  const Tensor base(view->base);
  view->history_version = view->storage->version;
  if (!view->grad_fn && !base.requires_grad()) return;
  Session& session = view->storage->session();
  Scoped<bool> grad_mode(session.modes.grad, true);
  Scoped<bool> autograd(session.modes.below_autograd, false);
  Tensor again = call<"as_strided">(session, base, view.sizes(), view.strides(), view->offset);
  view->grad_fn = again->grad_fn;
  view->output_nr = again->output_nr;
}

void change_geometry(const Tensor& self, SizesView sizes, SizesView strides, int64_t offset) {
  if (self->grad_fn) grad_fn(self)->metadata[self->output_nr] = Geometry(alias(self));
  self->sizes = Sizes(sizes);
  self->strides = Sizes(strides);
  self->offset = offset;
  self->refresh();
}

}  // namespace metaprof
