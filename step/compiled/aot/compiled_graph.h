#pragma once
// A graph as the framework's compiler hands it over: calls of operators that write to no argument, each as early
// as the program makes it, and every piece of memory gone after its last use. Views are no calls: who uses one
// uses the memory that it looks into.

#include <vector>

#include "meta/session/session.h"

namespace metaprof {

/// A piece of memory: an input of the graph, or what one of its calls makes.
using MemoryId = int32_t;
inline constexpr MemoryId kNoMemory = -1;

/// How a call sees a piece of memory.
struct MemoryView {
  MemoryId memory = kNoMemory;  ///< none: a number that the host holds
  Sizes sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::f32;
  Device device;
  bool wrapped_number = false;
};

struct CompiledArgument {
  Value constant;                 ///< unless it has views
  std::vector<MemoryView> views;  ///< of a tensor or a list of tensors
  std::vector<bool> defined;      ///< of a list: whether the element is a tensor; paired with `views`
  bool is_list = false;
};

struct CompiledCall {
  const Operator* op = nullptr;  ///< null: memory of `bytes` and no operator
  int64_t bytes = 0;
  std::vector<CompiledArgument> arguments;
  std::vector<MemoryId> results;  ///< per tensor; kNoMemory: memory of an argument, or nobody wants it
  std::vector<MemoryId> drops;    ///< what goes after the call
};

struct CompiledGraph {
  size_t memories = 0;  ///< they are numbered from 0
  std::vector<MemoryId> inputs;
  std::vector<CompiledCall> calls;
  std::vector<MemoryView> outputs;
};

/// Every memory that a call uses.
template <class Visit>  // Visit(MemoryId)
void visit_uses(const CompiledCall& call, const Visit& visit) {
  for (const CompiledArgument& argument : call.arguments)
    for (const MemoryView& view : argument.views)
      if (view.memory != kNoMemory) visit(view.memory);
}

/// Says after which calls memory goes: after the last that uses it. Inputs that nobody uses and outputs stay.
void note_drops(CompiledGraph& graph);

/// The view as a tensor over this storage.
Tensor tensor_of(const MemoryView& view, Ref<Storage> storage);

/// Runs the calls below autograd, on these storages (paired with the inputs; the last holder of one lets it go
/// after its last use). Returns those of the outputs; null where an output is no tensor.
std::vector<Ref<Storage>> run(Session& session, const CompiledGraph& graph, std::vector<Ref<Storage>> inputs);

}  // namespace metaprof
