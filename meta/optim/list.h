#pragma once
// Lists of tensors as Python keeps them, and operators over them.

#include <concepts>

#include "meta/session/call.h"

namespace metaprof {

/// A Python list: it lets go of its elements from the last to the first.
class List {
 public:
  List() = default;
  explicit List(Value::Tensors tensors) : tensors_(std::move(tensors)) {}
  List(const List&) = default;
  List(List&&) noexcept = default;
  ~List() { clear(); }
  List& operator=(List other) noexcept {
    std::swap(tensors_, other.tensors_);
    return *this;
  }

  void clear() {
    while (!tensors_.empty()) tensors_.pop_back();
  }
  void push_back(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  size_t size() const { return tensors_.size(); }
  bool empty() const { return tensors_.empty(); }
  Tensor& operator[](size_t i) { return tensors_[i]; }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  const Value::Tensors& tensors() const { return tensors_; }

 private:
  Value::Tensors tensors_;
};

inline Value as_value(const List& list) { return Value(list.tensors()); }
template <class T>
requires(!std::same_as<std::remove_cvref_t<T>, List>) Value as_value(T&& value) {
  return Value(std::forward<T>(value));
}

/// An operator over lists that makes a new list: `fresh<"_foreach_sqrt">(session, list)`.
template <FixedString name, class... Arguments>
List fresh(Session& session, Arguments&&... arguments) {
  Results results = call_all<name>(session, as_value(std::forward<Arguments>(arguments))...);
  return List(results.tensors());
}

/// One that writes to its first list.
template <FixedString name, class... Arguments>
void in_place(Session& session, const List& self, Arguments&&... arguments) {
  call_all<name>(session, as_value(self), as_value(std::forward<Arguments>(arguments))...);
}

/// One number per tensor. Their values decide no sizes.
inline Value numbers(const List& list) { return Value(Value::Reals(list.size(), 1.0)); }

}  // namespace metaprof
