#include "step/eager/unmodelled.h"

#include "meta/autograd/graph/saved_tensor.h"
#include "meta/autograd/graph/views.h"
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

CallRecord record_of(Session& session, std::string_view op, bool is_known) {
  CallRecord record;
  record.op = session.trace.intern(op);
  record.module = session.module;
  record.phase = session.phase;
  record.unmodelled = !is_known;
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

// The call in the trace, as long as it runs.
class CallInTrace {
 public:
  CallInTrace(Session& session, std::string_view op, const std::vector<Tensor>& inputs, size_t outputs,
              bool is_known = false)
      : index(begin(session, record_of(session, op, is_known), inputs, outputs)),
        end_(session.trace, index),
        inside_(session.call, index + 1) {}
  const uint32_t index;

 private:
  static uint32_t begin(Session& session, CallRecord record, const std::vector<Tensor>& inputs,
                        size_t outputs) {
    Trace& trace = session.trace;
    record.first_tensor = static_cast<uint32_t>(trace.tensors.size());
    record.inputs = static_cast<uint16_t>(inputs.size());
    record.outputs = static_cast<uint16_t>(outputs);
    for (const Tensor& tensor : inputs) add_tensor(trace, tensor);
    const auto index = static_cast<uint32_t>(trace.calls.size());
    trace.calls.push_back(record);
    trace.add({.kind = Event::Kind::call, .id = index});
    return index;
  }

  const EndOfCall end_;
  const Scoped<uint32_t> inside_;
};

// Nothing: no gradient is wanted.
Ref<Node> backward_of(Session& session, std::string_view op, const std::vector<Tensor>& inputs,
                      uint32_t call) {
  bool requires_grad = false;
  for (const Tensor& tensor : inputs) requires_grad |= tensor.requires_grad();
  if (!requires_grad || !session.modes.grad) return {};
  return make<UnmodelledBackward>(session, op, inputs, call + 1);
}

}  // namespace

ResultList call_unmodelled(Session& session, std::string_view op, const std::vector<Value>& arguments,
                           const std::vector<TensorFacts>& facts, bool is_known) {
  Trace& trace = session.trace;
  const std::vector<Tensor> inputs = tensors_of(arguments);
  const CallInTrace call(session, op, inputs, facts.size(), is_known);
  const Ref<Node> node = backward_of(session, op, inputs, call.index);
  ResultList results;
  for (const TensorFacts& fact : facts) {
    Tensor tensor =
        session.empty_strided(fact.sizes, fact.strides, fact.dtype, fact.device.value_or(session.device));
    if (node && is_differentiable(fact.dtype)) set_gradient_edge(tensor, {node, node->add_output(tensor)});
    add_tensor(trace, tensor);
    results.push_back(Value(std::move(tensor)));
  }
  return results;
}

void attach_unmodelled(Session& session, std::string_view op, const std::vector<Tensor>& arguments,
                       const std::vector<Tensor>& results) {
  const CallInTrace call(session, op, arguments, results.size());
  const Ref<Node> node = backward_of(session, op, arguments, call.index);
  for (const Tensor& result : results) {
    if (node && result.defined() && is_differentiable(result.dtype()))
      set_gradient_edge(result, {node, node->add_output(result)});
    add_tensor(session.trace, result);
  }
}

}  // namespace metaprof
