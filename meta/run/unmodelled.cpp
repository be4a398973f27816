#include "meta/run/unmodelled.h"

#include "meta/autograd/saved_tensor.h"
#include "meta/autograd/views.h"
#include "meta/session/call_in_trace.h"

namespace metaprof {
namespace {

// Backward of something unknown: a gradient of its own for every argument that needs one.
class UnmodelledBackward final : public Node {
 public:
  UnmodelledBackward(Session& session, std::string_view op, const std::vector<Tensor>& arguments,
                     uint32_t maker)
      : Node(session, "UnmodelledBackward(" + std::string(op) + ")", maker) {
    for (const Tensor& tensor : arguments) {
      add_next(gradient_edge(tensor));
      geometries_.emplace_back(tensor);
    }
    record_edges();
  }
  Gradients apply(Gradients&) override {
    Gradients outgoing;
    for (size_t i = 0; i < next.size(); ++i) {
      const bool wanted = next[i].valid() && is_differentiable(geometries_[i]->dtype);
      outgoing.push_back(wanted ? session.empty_strided(geometries_[i]->sizes, geometries_[i]->strides,
                                                        geometries_[i]->dtype, geometries_[i]->device)
                                : Tensor());
    }
    return outgoing;
  }

 private:
  std::vector<Geometry> geometries_;
};

CallRecord record_of(Session& session, std::string_view op) {
  CallRecord record;
  record.op = session.trace.intern(op);
  record.module = session.module;
  record.phase = session.phase;
  record.unmodelled = true;
  record.depth = session.depth;
  record.node = session.node;
  return record;
}

std::vector<Tensor> tensors_of(const std::vector<Value>& arguments) {
  std::vector<Tensor> tensors;
  for (const Value& value : arguments) {
    if (value.is_tensor()) tensors.push_back(value.tensor());
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors())
        if (tensor.defined()) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace

ResultList call_unmodelled(Session& session, std::string_view op, const std::vector<Value>& arguments,
                           const std::vector<TensorFacts>& facts) {
  Trace& trace = session.trace;
  const std::vector<Tensor> inputs = tensors_of(arguments);
  CallRecord record = record_of(session, op);
  record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
  record.inputs = static_cast<uint16_t>(inputs.size());
  record.outputs = static_cast<uint16_t>(facts.size());
  for (const Tensor& tensor : inputs) add_tensor(trace, tensor);
  const auto index = static_cast<uint32_t>(trace.calls.size());
  trace.calls.push_back(record);
  trace.add({.kind = Event::Kind::call, .id = index});
  const EndOfCall end(trace, index);
  Scoped<uint32_t> inside(session.call, index + 1);
  ResultList results;
  bool requires_grad = false;
  for (const Tensor& tensor : inputs) requires_grad |= tensor.requires_grad();
  Ref<Node> node;
  if (requires_grad && session.modes.grad) node = make<UnmodelledBackward>(session, op, inputs, index + 1);
  for (const TensorFacts& fact : facts) {
    Tensor tensor =
        session.empty_strided(fact.sizes, fact.strides, fact.dtype, fact.device.value_or(session.device));
    if (node && is_differentiable(fact.dtype)) set_gradient_edge(tensor, {node, node->add_output(tensor)});
    add_tensor(trace, tensor);
    results.push_back(Value(std::move(tensor)));
  }
  return results;
}

}  // namespace metaprof
