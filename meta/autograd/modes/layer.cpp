// The dispatcher's autograd layer: makes the node of a differentiable call and saves what its formulas read.

#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/views.h"
#include "meta/autograd/modes/autocast.h"

namespace metaprof {
namespace {

bool requires_grad(const Value& value) {
  if (value.is_tensor()) return value.tensor().requires_grad();
  if (value.is_tensors())
    for (const Tensor& tensor : value.tensors())
      if (tensor.requires_grad()) return true;
  return false;
}

bool any_requires_grad(const Call& call) {
  for (uint8_t argument : call.op.differentiable)
    if (requires_grad(call.arguments[argument])) return true;
  return false;
}

// A view without a derivative has no base (as_view, is_bw_differentiable).
void forget_bases(const Value& value) {
  if (value.is_tensor()) value.tensor()->base.reset();
  if (value.is_tensors())
    for (const Tensor& tensor : value.tensors()) tensor->base.reset();
}

// Views that come as a list from one call may not be written in place.
void mark_list(const Value& list) {
  for (const Tensor& tensor : list.tensors())
    if (tensor.defined() && tensor->base) tensor->view_origin = ViewOrigin::multi_output;
}

void set_history(const Tensor& tensor, const Ref<Node>& node) {
  if (!tensor.defined() || !is_differentiable(tensor.dtype())) return node->add_undefined_output();
  const uint32_t output_nr = node->add_output(tensor);
  set_gradient_edge(tensor, {node, output_nr});
}

void set_histories(Call& call, const Ref<Node>& node) {
  if (call.op.writes) {
    for (uint8_t i : call.op.rewritten)
      if (call.arguments[i].is_tensor()) return rebase_history(call.arguments[i].tensor(), node);
  }
  // Results that never have a gradient are not counted (recorded: opinfo/lu_unpack).
  for (size_t i = 0; i < call.results.size(); ++i) {
    if (call.op.without_gradient >> i & 1) continue;
    if (call.results[i].is_tensors()) {
      for (const Tensor& tensor : call.results[i].tensors()) set_history(tensor, node);
    } else if (call.results[i].is_tensor()) {
      set_history(call.results[i].tensor(), node);
    } else {  // undefined, or a number
      node->add_undefined_output();
    }
  }
}

void check_writes(const Call& call) {
  const bool records = call.session.modes.grad && any_requires_grad(call);
  for (uint8_t i : call.op.rewritten) {
    if (!call.arguments[i].is_tensor()) continue;
    const Tensor& self = call.arguments[i].tensor();
    check_in_place(call, self, records || (call.session.modes.grad && self.requires_grad()));
  }
}

}  // namespace

void autograd_layer(Call& call) {
  const Operator& op = call.op;
  if (op.record.meta.composite) return call.next();
  if (op.writes) check_writes(call);
  if (call.session.modes.inference) return call.next();
  const bool records = op.has_derivative() && call.session.modes.grad && any_requires_grad(call);
  Ref<OpNode> node;
  if (records) {
    node = make<OpNode>(call);
    node->save_arguments(call);
  }
  call.next();
  if (op.record.facts.view && !op.has_derivative())
    for (const Value& value : call.results) forget_bases(value);
  if (op.record.facts.view && call.session.modes.grad)
    for (const Value& value : call.results)
      if (value.is_tensors()) mark_list(value);
  if (!records) return;
  // The call's own index is known only after it was written.
  node->maker = call.index + 1;
  call.session.trace.nodes[node->record].call = node->maker;
  set_histories(call, node);
  node->save_results(call);
}

void install_autograd(Session& session) {
  session.layers[static_cast<int>(Layer::autocast)] = autocast_layer;
  session.layers[static_cast<int>(Layer::autograd)] = autograd_layer;
  session.layers[static_cast<int>(Layer::record)] = record_layer;
  session.layers[static_cast<int>(Layer::kernel)] = kernel_layer;
  session.autograd = std::make_unique<AutogradState>();
  session.autocast = std::make_unique<AutocastState>();
}

}  // namespace metaprof
