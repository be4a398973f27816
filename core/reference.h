#pragma once
// Intrusive reference counting. The lifetime of handles is the model of the framework's lifetimes, so
// counts are visible (`use_count`) and handles are moved or released exactly where the framework does.
//
// Not thread-safe on purpose: everything that is counted belongs to one Session, and a Session belongs
// to one thread.

#include <cstdint>
#include <utility>

namespace metaprof {

/// Base of everything that is held by Ref. The last Ref destroys the object.
class Counted {
 public:
  virtual ~Counted() = default;
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  uint32_t use_count() const { return count_; }
  /// For Ref only.
  void retain() { ++count_; }
  void release() {
    if (--count_ == 0) destroy();
  }

 protected:
  /// What the last owner does. Overridden where a chain of objects must not be destroyed recursively.
  virtual void destroy() { delete this; }

 private:
  uint32_t count_ = 0;
};

/// Owning handle to a Counted object (or to anything with `retain` and `release`), or nothing.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& other) : object_(other.get()) {
    retain();
  }
  template <class U>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}
  ~Ref() { reset(); }

  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  void reset() {
    if (T* object = std::exchange(object_, nullptr)) object->release();
  }
  /// Gives the count to the caller, who must hand it to another Ref.
  T* detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

  /// Takes over a count that was given up by `detach`.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }

 private:
  void retain() {
    if (object_) object_->retain();
  }

  T* object_ = nullptr;
};

template <class T, class... Arguments>
Ref<T> make(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace metaprof
