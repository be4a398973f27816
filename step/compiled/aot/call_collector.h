#pragma once
// Writes down the operators that a session runs on a device, as calls on pieces of memory. A backend that makes no
// numbers: it sees every call that is no composite, below autograd.

#include <string>
#include <unordered_map>

#include "meta/session/backend.h"
#include "meta/session/call.h"
#include "step/compiled/aot/compiled_graph.h"

namespace metaprof {

class CallCollector final : public Backend {
 public:
  /// Where one call is the first to use several inputs, buffers come before parameters and these before what the
  /// user gives: a module reads its own tensors before the compiler looks at an argument.
  enum class InputKind : uint8_t { buffer, parameter, user };

  /// A tensor that the program takes; before anything runs.
  MemoryId add_input(const Tensor& tensor, InputKind kind);
  /// What comes from here on is the backward.
  void begin_backward() { backward_begins_ = calls_.size(); }

  void run(Call& call) override;
  void wrapped(const Tensor&, const Value&) override {}

  const std::vector<CompiledCall>& calls() const { return calls_; }
  size_t backward_begins() const { return backward_begins_; }
  size_t memories() const { return memories_; }
  /// Inputs in the order in which calls first use them.
  const std::vector<MemoryId>& used_inputs() const { return used_inputs_; }
  /// What an input has become by writing; itself if nobody wrote to it.
  MemoryId now(MemoryId input) const;
  /// How `tensor` looks at memory now.
  MemoryView view_of(const Tensor& tensor);
  /// The gradient of an output, which comes from outside; before the backward.
  MemoryId add_gradient(const Tensor& tensor) { return add_storage(tensor->storage); }
  const std::string& not_modelled() const { return not_modelled_; }

 private:
  MemoryId add_memory() { return static_cast<MemoryId>(memories_++); }
  MemoryId add_storage(const Ref<Storage>& storage);
  MemoryId memory_of(const Tensor& tensor);
  CompiledArgument argument_of(const Value& value);
  void note_first_uses(const CompiledCall& call);
  bool is_outside(const Call& call) const;
  void note_outside(const Call& call);
  void note(const Call& call, CompiledCall noted);
  void functionalise(const Call& call, CompiledCall& noted);
  void become(const Tensor& written, MemoryId memory);

  std::vector<CompiledCall> calls_;
  std::unordered_map<const Storage*, MemoryId> known_;
  std::vector<Ref<Storage>> held_;  // so that no address is used twice
  struct Input {
    MemoryId memory, now;
    InputKind kind;
    bool used = false;
  };
  std::vector<Input> inputs_;
  std::vector<MemoryId> used_inputs_;
  std::unordered_map<const Storage*, MemoryView> copied_gradients_;  // by the copy
  size_t backward_begins_ = SIZE_MAX, memories_ = 0;
  bool inside_ = false;
  std::string not_modelled_;
};

}  // namespace metaprof
