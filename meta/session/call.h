#pragma once
// One call of an operator: its arguments, its results, and what its record's functions may do. `call<"mm">`
// is how formulas, bodies and kernels call operators.

#include <algorithm>
#include <array>
#include <optional>

#include "meta/op/registry.h"
#include "meta/session/limits.h"
#include "meta/session/session.h"

namespace metaprof {

using ResultList = SmallVector<Value, 4>;

/// Python's default dtype.
inline constexpr DType kDefaultDType = DType::f32;

struct Call {
  Session& session;
  const Operator& op;
  std::span<Value> arguments;  ///< one per argument of the schema
  ResultList results;
  int layer = 0;       ///< the layer that `next` goes to
  uint32_t index = 0;  ///< into Trace::calls, once it is written

  // Arguments by name. A name that the schema does not have is a mistake in the record.
  const Value& operator[](Name name) const { return arguments[index_of(name)]; }
  size_t index_of(Name name) const;
  const Tensor& tensor(Name name) const { return (*this)[name].tensor(); }
  const Value::Tensors& tensors(Name name) const { return (*this)[name].tensors(); }
  const Sizes& ints(Name name) const { return (*this)[name].integers(); }
  /// At most kLargestInteger (meta/session/limits.h), at least its negative.
  int64_t integer(Name name) const {
    return std::clamp((*this)[name].integer(), -kLargestInteger, kLargestInteger);
  }
  double real(Name name) const { return (*this)[name].real(); }
  bool boolean(Name name) const { return (*this)[name].boolean(); }
  bool given(Name name) const { return !(*this)[name].is_none(); }
  /// dtype argument, or `otherwise` if it is None.
  DType dtype(Name name, DType otherwise) const;

  /// The device of the first tensor argument; of the session if there is none.
  Device device() const;
  bool on_cuda() const { return device().is_cuda(); }
  const Platform& platform() const { return session.platform; }
  /// Of the hardware: what kernels decide by it (Session::ask).
  template <class Question>
  auto ask(Question question) const {
    return session.ask(std::move(question));
  }

  // --- For `meta`: results, in order. Their memory comes later, from the kernel.
  Tensor& output(SizesView sizes, SizesView strides, DType dtype) {
    return output(sizes, strides, dtype, device());
  }
  Tensor& output(SizesView sizes, DType dtype) {
    return output(sizes, contiguous_strides(sizes), dtype, device());
  }
  Tensor& output(SizesView sizes, SizesView strides, DType dtype, Device device);
  /// Same sizes, dtype and (dense) strides as another tensor.
  Tensor& output_like(const Tensor& other);
  Tensor& output_like(const Tensor& other, DType dtype);
  /// A view of a tensor argument.
  Tensor& view(const Tensor& of, SizesView sizes, SizesView strides, int64_t offset);
  /// Several views of one tensor argument as one list result.
  void view_list(std::vector<Tensor> views) { results.push_back(Value(std::move(views))); }
  /// An argument itself (in-place operators), or any other ready value.
  void result(Value value) { results.push_back(std::move(value)); }
  /// An undefined tensor.
  void no_output() { results.push_back(Value()); }
  const Tensor& result_tensor(size_t i = 0) const { return results[i].tensor(); }

  // --- For kernels: memory, in the order in which the framework's host code asks for it.
  /// Memory for result i, unless it has some. `bytes` may exceed what the geometry needs.
  void allocate(size_t i, std::optional<int64_t> bytes = {});
  /// Memory for all results that have none yet, in order.
  void allocate_all();
  /// Result i is what calls inside the kernel made: it takes that tensor's memory. An in-place operator's
  /// result has its memory already and is copied to.
  void adopt(size_t i, const Tensor& made);
  /// A tensor that lives as long as its handle.
  Tensor temporary(SizesView sizes, DType dtype);
  Tensor temporary(SizesView sizes, SizesView strides, DType dtype);
  /// Raw memory that lives as long as its handle.
  Ref<Storage> temporary_bytes(int64_t bytes, Category category = Category::temporary);
  /// The tensor itself if it is contiguous in that format, else a contiguous copy (op: clone).
  Tensor contiguous(const Tensor& tensor, MemoryFormat format = MemoryFormat::contiguous);

  /// Goes on with the next layer.
  void next() { session.layers[layer++](*this); }

  /// "where" for messages: operator and module.
  [[noreturn]] void error(std::string_view message) const;
};

/// Results of `call_all`.
class Results {
 public:
  explicit Results(ResultList list) : list_(std::move(list)) {}
  Tensor operator[](size_t i) const { return list_[i].tensor(); }
  const Value& value(size_t i = 0) const { return list_[i]; }
  const Value::Tensors& tensors() const { return list_[0].tensors(); }
  size_t size() const { return list_.size(); }
  ResultList& list() { return list_; }

 private:
  ResultList list_;
};

/// Calls an operator. `given` are arguments from the first on, which are moved from; the rest take the
/// schema's defaults. Numbers given for tensors become wrapped host scalars. Errors name the operator and the
/// module.
Results invoke(Session& session, const Operator& op, std::span<Value> given);

/// The arguments of one call on their way to it: who takes them destroys them, so that each of the many calls
/// in formulas is a few instructions.
template <size_t count>
union GivenArguments {
  template <class... Arguments>
  explicit GivenArguments(Arguments&&... arguments) noexcept
      : values{Value(std::forward<Arguments>(arguments))...} {}
  ~GivenArguments() {}  // NOLINT(modernize-use-equals-default): by default a union of such values has none
  Value values[count];
};

/// Calls the operator in a slot, whose only result is a tensor; takes the arguments.
Tensor call_slot(Session& session, uint32_t slot, Value* given, size_t count);
/// Calls the operator in a slot for all that it returns; takes the arguments.
Results call_slot_for_all(Session& session, uint32_t slot, Value* given, size_t count);

/// Calls an operator that returns one tensor.
template <FixedString name, class... Arguments>
Tensor call(Session& session, Arguments&&... arguments) {
  GivenArguments<sizeof...(Arguments)> given(std::forward<Arguments>(arguments)...);
  return call_slot(session, slot_of<name, SlotUse::one_tensor>, given.values, sizeof...(Arguments));
}
/// Calls an operator that returns several values, a list, a number or nothing.
template <FixedString name, class... Arguments>
Results call_all(Session& session, Arguments&&... arguments) {
  GivenArguments<sizeof...(Arguments)> given(std::forward<Arguments>(arguments)...);
  return call_slot_for_all(session, slot_of<name, SlotUse::all_results>, given.values, sizeof...(Arguments));
}

/// What a record says of a call: geometry, memory in the order of the host code, versions. No numbers.
void run_record(Call&);

/// Runs a scope below autograd and autocast, as kernels and the engine's own copies do.
class BelowAutograd {
 public:
  explicit BelowAutograd(Session& session) : guard_(session.modes.below_autograd, true) {}

 private:
  Scoped<bool> guard_;
};

/// The layers "record" and "kernel" of the dispatcher (dispatcher.cpp).
void record_layer(Call&);
void kernel_layer(Call&);

}  // namespace metaprof
