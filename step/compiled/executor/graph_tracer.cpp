#include "step/compiled/executor/graph_tracer.h"

#include <algorithm>

#include "core/error.h"
#include "meta/session/call.h"
#include "step/compiled/ir/verify_graph.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// What is known of an argument when it comes in: as ArgumentSpec has it, and its sizes.
Type type_of_argument(const metaprof::Value& value) {
  if (!value.is_tensor() || !value.tensor().defined()) return type_of(value);
  const Tensor& tensor = value.tensor();
  TensorDetail detail;
  detail.dtype = tensor.dtype();
  detail.device = tensor.device().type;
  detail.rank = static_cast<int>(tensor.dim());
  detail.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  detail.requires_grad = tensor.requires_grad();
  detail.defined = true;
  return Type(detail);
}

}  // namespace

GraphTracer::GraphTracer(Session& session, std::span<const metaprof::Value> inputs) : session_(session) {
  for (const metaprof::Value& input : inputs) note(input, graph_->add_input(type_of_argument(input)));
}

// Numbers have no identity: only tensors are found again.
void GraphTracer::note(const metaprof::Value& made, Value* value) {
  if (made.is_tensor() && made.tensor().defined()) {
    seen_.push_back(made.tensor());
    values_[&*made.tensor()] = value;
  } else if (made.is_tensors()) {
    Node* unpack = graph_->create(Kind::list_unpack, {value});
    graph_->block().append(unpack);
    for (const Tensor& tensor : made.tensors())
      note(metaprof::Value(tensor), unpack->add_output(Type::Kind::tensor));
  }
}

Value* GraphTracer::tensor_value(const Tensor& tensor) {
  if (!tensor.defined()) return value_of(metaprof::Value());
  const auto found = values_.find(&*tensor);
  if (found == values_.end())
    fail("a tensor is used in a traced run that neither came in nor was made in it: pass it as an input");
  return found->second;
}

Value* GraphTracer::value_of(const metaprof::Value& value) {
  Node* node = nullptr;
  if (value.is_tensor() && value.tensor().defined()) return tensor_value(value.tensor());
  if (value.is_tensors()) {
    node = graph_->create(Kind::list_construct);
    for (const Tensor& tensor : value.tensors()) node->add_input(tensor_value(tensor));
    node->add_output(Type::Kind::tensors);
  } else {
    node = graph_->create_constant(value);
  }
  graph_->block().append(node);
  return node->output();
}

std::vector<metaprof::Value> GraphTracer::call(const Operator& op, std::vector<metaprof::Value> arguments) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < op.schema.arguments.size(); ++i)
    inputs.push_back(value_of(i < arguments.size() ? arguments[i] : op.schema.arguments[i].default_value));
  Results results = invoke(session_, op, arguments);
  Node* node = graph_->create_call(op, inputs);
  graph_->block().append(node);
  std::vector<metaprof::Value> made;
  for (size_t i = 0; i < results.size(); ++i) {
    made.push_back(std::move(results.list()[i]));
    if (i < node->outputs.size()) note(made.back(), node->output(i));
  }
  return made;
}

std::vector<metaprof::Value> GraphTracer::run(GraphExecutor& executor, std::vector<metaprof::Value> inputs) {
  const std::shared_ptr<Graph> graph = executor.specialised(session_, inputs);
  ValueMap map;
  for (size_t i = 0; i < graph->block().inputs().size(); ++i)
    map[graph->block().input(i)] = value_of(inputs[i]);
  std::vector<metaprof::Value> outputs = executor.run_fallback(session_, std::move(inputs));
  const std::vector<Value*> values = insert_copy(graph->block(), graph_->block().results.get(), map);
  for (size_t i = 0; i < outputs.size(); ++i) note(outputs[i], values[i]);
  return outputs;
}

std::shared_ptr<Graph> GraphTracer::finish(std::span<const metaprof::Value> outputs) {
  for (const metaprof::Value& output : outputs) graph_->add_output(value_of(output));
  verify(*graph_);
  values_.clear();
  seen_.clear();
  return std::move(graph_);
}

}  // namespace metaprof::ir
