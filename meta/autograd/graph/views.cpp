#include "meta/autograd/graph/views.h"

#include "core/error.h"
#include "meta/autograd/graph/accumulate_grad.h"
#include "meta/autograd/graph/run_hooks.h"

namespace metaprof {

namespace {

// at::has_internal_overlap, as TensorIterator asks it.
bool overlaps_itself(const TensorImpl& tensor) {
  if (tensor.dense) return false;
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.strides[d] == 0 && tensor.sizes[d] > 1) return true;
  return false;
}

// Views whose history cannot be made again after a write (torch/csrc/autograd/variable.cpp,
// handle_view_on_rebase).
void refuse_special_view(std::string_view who, const TensorImpl& view, std::string_view how) {
  if (view.view_origin == ViewOrigin::multi_output)
    fail(
        "{}: the output of a function that returns several views cannot be written in place{}: use its "
        "out-of-place form",
        who, how);
  if (view.view_origin == ViewOrigin::no_grad)
    fail("{}: a view that was made in no_grad mode cannot be written in place with grad mode on{}", who, how);
}

// What writes one value to every element may meet an element twice (check_mem_overlap(false) in
// aten/native/Fill.cpp); writes through an index only warn.
bool may_overlap_itself(const Operator& op) { return !op.in_place && !op.record.facts.writes_each_once; }

}  // namespace

void check_in_place(const Call& call, const Tensor& self, bool records) {
  if (self->inference && !call.session.modes.inference)
    call.error("a tensor of inference mode cannot be written in place outside of it: clone it first");
  if (records) {
    if (self->base) refuse_special_view(call.op.name, *self, "");
    if (self.requires_grad() && self->base && Tensor(self->base).is_leaf())
      call.error("a view of a leaf that requires grad cannot be written in place");
    if (self.requires_grad() && self.is_leaf())
      call.error("a leaf that requires grad cannot be written in place");
  }
  if (overlaps_itself(*self) && !may_overlap_itself(call.op))
    call.error("several elements of " + describe(self) +
               " lie at one place in memory, so it cannot be written in place: clone it first");
}

CopySlices::CopySlices(const Tensor& base, const Tensor& view, Ref<Node> write)
    : Node(session_of(base), "CopySlices", 0),
      view_sizes_(view.sizes()),
      view_strides_(view.strides()),
      view_offset_(view->offset - base->offset),
      write_(std::move(write)) {
  add_output(base);
  add_next(gradient_edge(base));
  for (size_t i = 1; i < write_->next.size(); ++i) add_next(write_->next[i]);
  record_edges();
  session.trace.nodes[record].inner = write_->record + 1;
}

Gradients CopySlices::apply(Gradients& incoming) {
  if (released_)
    fail(
        "CopySlices: trying to go backward through the graph a second time, but it has been freed: use "
        "retain_graph if you need to");
  Gradients outgoing;
  outgoing.resize(next.size());
  const Tensor& gradient = incoming[0];
  if (!gradient.defined()) return outgoing;
  // torch/csrc/autograd/functions/tensor.cpp: the base's gradient is copied, the slice of the copy is cloned
  // for the write's formula, and what comes out replaces the slice.
  const Geometry& base = outputs[0];
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

namespace {

void replace_history(const Tensor& tensor, Ref<Node> node) {
  const Ref<Counted> before = tensor->grad_fn;
  set_gradient_edge(tensor, {std::move(node), 0});
  if (before) move_retain_grad(tensor, static_cast<Node&>(*before));
}

}  // namespace

void rebase_history(const Tensor& self, Ref<Node> node) {
  node->add_output(self);
  if (!self->base) return replace_history(self, std::move(node));
  const Tensor base(self->base);
  replace_history(base, make<CopySlices>(base, self, std::move(node)));
  refresh_view_history(self);
}

void refresh_view_history(const Tensor& view) {
  if (!view->base || view->history_version == view->version()) return;
  const Tensor base(view->base);
  if (!view->grad_fn && !base.requires_grad()) return;
  refuse_special_view("a view is used", *view, ", nor what it is a view of");
  view->history_version = view->version();  // a view that was refused is refused again
  Session& session = session_of(view);
  Scoped<bool> grad_mode(session.modes.grad, true);
  Scoped<bool> autograd(session.modes.below_autograd, false);
  Tensor again = call<"as_strided">(session, base, view.sizes(), view.strides(), view->offset);
  view->grad_fn = again->grad_fn;
  view->output_nr = again->output_nr;
}

namespace {

const Edge* edge_to(const Node& node, const TensorImpl* tensor) {
  for (const Edge& edge : node.next)
    if (edge.valid() && edge.input_nr < edge.node->inputs() &&
        edge.node->outputs[edge.input_nr].get() == tensor)
      return &edge;
  return nullptr;
}

// Who made the tensor keeps the geometry that it had; if that was an operator in place, so does who made it
// before.
void keep_geometry(const Tensor& tensor) {
  const Geometry before(alias(tensor));
  Node* node = grad_fn(tensor);
  uint32_t output = tensor->output_nr;
  while (node && node->outputs[output].get() == tensor.get()) {
    node->outputs[output] = before;
    const Edge* edge = edge_to(*node, tensor.get());
    if (!edge) return;
    node = edge->node.get();
    output = edge->input_nr;
  }
}

}  // namespace

void change_geometry(const Tensor& self, SizesView sizes, SizesView strides, int64_t offset) {
  if (self->grad_fn) keep_geometry(self);
  self->sizes = Sizes(sizes);
  self->strides = Sizes(strides);
  self->offset = offset;
  self->refresh();
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  refresh_view_history(tensor);
  if (tensor->grad_fn) return {Ref<Node>(grad_fn(tensor)), tensor->output_nr};
  if (!tensor->requires_grad) return {};  // a view that no_grad mode made leads nowhere
  return {accumulator_of(tensor), 0};
}

}  // namespace metaprof
