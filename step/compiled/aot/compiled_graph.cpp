#include "step/compiled/aot/compiled_graph.h"

#include "meta/session/call.h"

namespace metaprof {
namespace {

using Storages = std::vector<Ref<Storage>>;  // by MemoryId

Tensor argument_tensor(Session& session, const MemoryView& view, const Storages& storages) {
  if (view.memory != kNoMemory) return tensor_of(view, storages[static_cast<size_t>(view.memory)]);
  return tensor_of(view, session.allocate(view.device, 0));
}

Value argument_of(Session& session, const CompiledArgument& argument, const Storages& storages) {
  if (argument.is_list) {
    Value::Tensors tensors;
    for (size_t i = 0; i < argument.views.size(); ++i)
      tensors.push_back(argument.defined[i] ? argument_tensor(session, argument.views[i], storages)
                                            : Tensor());
    return Value(std::move(tensors));
  }
  if (argument.views.empty()) return argument.constant;
  return Value(argument_tensor(session, argument.views[0], storages));
}

void store(const CompiledCall& call, Results made, Storages& storages) {
  size_t next = 0;
  const auto keep = [&](const Tensor& tensor) {
    if (next >= call.results.size()) return;
    const MemoryId memory = call.results[next++];
    if (memory != kNoMemory && tensor.defined()) storages[static_cast<size_t>(memory)] = tensor->storage;
  };
  for (const Value& result : made.list()) {
    if (result.is_tensors()) {
      for (const Tensor& tensor : result.tensors()) keep(tensor);
    } else {
      keep(result.is_tensor() ? result.tensor() : Tensor());
    }
  }
}

void run_call(Session& session, const CompiledCall& call, Storages& storages) {
  if (call.op == nullptr) {
    storages[static_cast<size_t>(call.results[0])] = session.allocate(session.device, call.bytes);
    return;
  }
  std::vector<Value> arguments;
  for (const CompiledArgument& argument : call.arguments)
    arguments.push_back(argument_of(session, argument, storages));
  store(call, invoke(session, *call.op, arguments), storages);
}

}  // namespace

void note_drops(CompiledGraph& graph) {
  std::vector<bool> needed(graph.memories, false);
  for (const MemoryView& output : graph.outputs)
    if (output.memory != kNoMemory) needed[static_cast<size_t>(output.memory)] = true;
  for (size_t i = graph.calls.size(); i-- > 0;) {
    CompiledCall& call = graph.calls[i];
    call.drops.clear();
    const auto drop = [&](MemoryId memory) {
      if (memory == kNoMemory || needed[static_cast<size_t>(memory)]) return;
      needed[static_cast<size_t>(memory)] = true;
      call.drops.push_back(memory);
    };
    visit_uses(call, drop);
    for (const MemoryId result : call.results) drop(result);
  }
}

Tensor tensor_of(const MemoryView& view, Ref<Storage> storage) {
  Tensor tensor(new TensorImpl(view.sizes, view.strides, view.dtype, view.device));
  tensor->offset = view.offset;
  tensor->wrapped_number = view.wrapped_number;
  tensor->storage = std::move(storage);
  return tensor;
}

std::vector<Ref<Storage>> run(Session& session, const CompiledGraph& graph,
                              std::vector<Ref<Storage>> inputs) {
  const BelowAutograd below(session);
  Storages storages(graph.memories);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    storages[static_cast<size_t>(graph.inputs[i])] = std::move(inputs[i]);
  for (const CompiledCall& call : graph.calls) {
    run_call(session, call, storages);
    for (const MemoryId memory : call.drops) storages[static_cast<size_t>(memory)].reset();
  }
  std::vector<Ref<Storage>> outputs;
  for (const MemoryView& output : graph.outputs)
    outputs.push_back(output.memory == kNoMemory ? nullptr : storages[static_cast<size_t>(output.memory)]);
  return outputs;
}

}  // namespace metaprof
