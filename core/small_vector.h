#pragma once
// A vector whose first N elements need no allocation: sizes, strides, edges, gradients.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace metaprof {

template <class T, uint32_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t count) { resize(count); }
  SmallVector(size_t count, const T& value) { resize(count, value); }
  SmallVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  template <class Iterator>
  SmallVector(Iterator first, Iterator last) {
    append(first, last);
  }
  explicit SmallVector(std::span<const T> values) { append(values.begin(), values.end()); }
  SmallVector(const SmallVector& other) { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(std::move(other)); }
  ~SmallVector() { destroy(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      destroy();
      take(std::move(other));
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[checked(i)]; }
  const T& operator[](size_t i) const { return data_[checked(i)]; }
  T& front() { return data_[checked(0)]; }
  T& back() { return data_[checked(size_t(size_) - 1)]; }
  const T& front() const { return data_[checked(0)]; }
  const T& back() const { return data_[checked(size_t(size_) - 1)]; }

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  T& push_back(T value) {
    if (size_ == capacity_) grow(size_t(capacity_) * 2);
    return *new (data_ + size_++) T(std::move(value));
  }
  void pop_back() {
    back().~T();
    --size_;
  }
  void resize(size_t count) {
    while (size_ > count) pop_back();
    reserve(count);
    while (size_ < count) new (data_ + size_++) T();
  }
  void resize(size_t count, const T& value) {
    while (size_ > count) pop_back();
    reserve(count);
    while (size_ < count) new (data_ + size_++) T(value);
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  iterator insert(size_t position, T value) {
    push_back(std::move(value));
    std::rotate(begin() + position, end() - 1, end());
    return begin() + position;
  }
  void erase(size_t position) {
    std::move(begin() + position + 1, end(), begin() + position);
    pop_back();
  }

  operator std::span<const T>() const { return {data_, size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  // Elements beyond the last lie within the object, where AddressSanitizer sees nothing: checked as those of std::vector.
  size_t checked(size_t i) const {
#ifdef _GLIBCXX_ASSERTIONS
    assert(i < size_);
#endif
    return i;
  }

  T* inline_data() { return reinterpret_cast<T*>(inline_); }

  void grow(size_t count) {
    if (count > std::numeric_limits<uint32_t>::max()) throw std::bad_alloc();
    // T may be a pointer. NOLINTNEXTLINE(bugprone-sizeof-expression)
    T* bigger = static_cast<T*>(::operator new(count * sizeof(T)));
    std::uninitialized_move(begin(), end(), bigger);
    std::destroy(begin(), end());
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = bigger;
    capacity_ = static_cast<uint32_t>(count);
  }
  void destroy() {
    clear();
    if (data_ != inline_data()) ::operator delete(data_);
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVector&& other) {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
      return;
    }
    data_ = inline_data();
    size_ = other.size_;
    std::uninitialized_move(other.begin(), other.end(), data_);
    other.clear();
  }

  T* data_ = inline_data();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];  // NOLINT(bugprone-sizeof-expression)
};

}  // namespace metaprof
