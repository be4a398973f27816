#pragma once
// A tensor of a model that is written in C++. It has no data: it names a value of the program that is being
// written down and knows its geometry. The lifetime of its handles is the lifetime of the value, as a Python
// object's is in eager PyTorch: when the last handle goes, the program drops the value behind its last call.
//
// Functions take tensors by value and let go of what was moved into them when the call has been written down,
// as Python lets go of a temporary of an expression.

#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "meta/tensor/tensor.h"
#include "program/program.h"

namespace metaprof::nn {

class Recording;

/// What a handle stands for. The last handle drops the value.
class Recorded final : public Counted {
 public:
  Recorded(Ref<Recording> recording, ValueId value, bool is_input, metaprof::Tensor geometry);
  ~Recorded() override;

  const Ref<Recording> recording;
  const ValueId value;
  const bool is_input;  ///< a parameter, a buffer or an input of the program, which outlives it
  const metaprof::Tensor geometry;
};

/// The dtype of a tensor: `y.to(x.dtype)` follows x in every precision, which a named dtype does not.
struct DTypeOf {
  DType dtype;
  ValueId value;
};

class Tensor {
 public:
  Tensor() = default;  ///< undefined, as Python's None
  explicit Tensor(Ref<Recorded> recorded) : recorded_(std::move(recorded)) {}

  bool defined() const { return static_cast<bool>(recorded_); }
  const Recorded& operator*() const { return *recorded_; }
  const Recorded* operator->() const { return recorded_.get(); }

  const Sizes& sizes() const { return recorded_->geometry.sizes(); }
  /// Negative dimensions count from the end.
  int64_t size(int64_t dim) const { return recorded_->geometry.size(dim); }
  int64_t dim() const { return recorded_->geometry.dim(); }
  bool is_contiguous() const { return recorded_->geometry.is_contiguous(); }
  DTypeOf dtype() const { return {recorded_->geometry.dtype(), recorded_->value}; }

 private:
  Ref<Recorded> recorded_;
};

/// An argument of a call: a tensor, a list of tensors, the dtype of a tensor, or a constant. An undefined
/// tensor is None.
class Argument {
 public:
  Argument(Tensor tensor) : tensor(std::move(tensor)) {}
  Argument(std::vector<Tensor> tensors) : tensors(std::move(tensors)) {}
  Argument(DTypeOf dtype) : constant(dtype.dtype), dtype_of(dtype.value) {}
  Argument(std::nullopt_t) {}
  template <class T>
  requires std::constructible_from<Value, T> Argument(T constant) : constant(std::move(constant)) {}

  Tensor tensor;
  std::optional<std::vector<Tensor>> tensors;
  Value constant;
  ValueId dtype_of = kNoValue;
};

/// Calls an operator by the framework's name ("add.Tensor"), with arguments in the order of its schema; those
/// that are left out have their defaults. At least one is a tensor. Errors: there is no such operator, and
/// what the operator itself refuses.
Tensor call(std::string_view op, std::span<Argument> given);
/// The same for an operator that returns a list or several tensors.
std::vector<Tensor> call_all(std::string_view op, std::span<Argument> given);

template <class... Arguments>
Tensor call(std::string_view op, Arguments... arguments) {
  Argument given[] = {Argument(std::move(arguments))...};
  return call(op, std::span<Argument>(given));
}
template <class... Arguments>
std::vector<Tensor> call_all(std::string_view op, Arguments... arguments) {
  Argument given[] = {Argument(std::move(arguments))...};
  return call_all(op, std::span<Argument>(given));
}

}  // namespace metaprof::nn
