#pragma once
// A list whose room is part of its type. It is a literal: tables that hold such lists are data, which the
// program neither builds nor destroys when it runs.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace metaprof {

/// At most N elements. A longer list does not compile where it is a constant, and stops the program elsewhere.
template <class T, size_t N>
class FixedList {
 public:
  constexpr FixedList() = default;
  constexpr FixedList(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }

  constexpr void push_back(const T& element) {
    if (size_ == N) __builtin_trap();  // give the list more room where its type is named
    elements_[size_++] = element;
  }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return elements_; }
  constexpr const T* end() const { return elements_ + size_; }
  constexpr const T& operator[](size_t i) const { return elements_[i]; }
  constexpr const T& front() const { return elements_[0]; }
  constexpr operator std::span<const T>() const { return {elements_, size_}; }

 private:
  T elements_[N] = {};
  uint8_t size_ = 0;
};

}  // namespace metaprof
