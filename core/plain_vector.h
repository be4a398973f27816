#pragma once
// A vector of plain data that may become very long. A large one is not copied when it grows: the system moves its pages, and
// pages that nothing was written to take no memory.

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace metaprof {

/// Another block with the first `size` bytes of `memory`, which is gone then; null makes the first one.
/// Errors: std::bad_alloc, and `memory` is as it was.
void* resized_plain_memory(void* memory, size_t size, size_t new_size);
void free_plain_memory(void* memory, size_t size);

template <class T>
class PlainVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  PlainVector() = default;
  PlainVector(const PlainVector& other) { append(other.begin(), other.end()); }
  PlainVector(PlainVector&& other) noexcept { swap(other); }
  PlainVector& operator=(const PlainVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  PlainVector& operator=(PlainVector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PlainVector() { free_plain_memory(data_, capacity_ * sizeof(T)); }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

  /// `value` may be an element of this vector.
  void push_back(const T& value) {
    const T copy = value;
    if (size_ == capacity_) grow(size_ + 1);
    new (data_ + size_++) T(copy);
  }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    push_back(T{std::forward<Arguments>(arguments)...});
    return back();
  }
  /// The range lies elsewhere.
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    const auto count = static_cast<size_t>(last - first);
    if (size_ + count > capacity_) grow(size_ + count);
    for (; first != last; ++first) new (data_ + size_++) T(*first);
  }
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    append(first, last);
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t size) {
    if (size > capacity_) grow(size);
    while (size_ < size) new (data_ + size_++) T();
    size_ = size;
  }
  void shrink_to_fit() {
    if (size_ > 0 && size_ < capacity_) set_capacity(size_);
  }
  void swap(PlainVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void grow(size_t needed) {
    size_t capacity = capacity_ < 16 ? 16 : 2 * capacity_;
    if (capacity < needed) capacity = needed;
    if (capacity > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    set_capacity(capacity);
  }
  void set_capacity(size_t capacity) {
    data_ = static_cast<T*>(resized_plain_memory(data_, capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace metaprof
