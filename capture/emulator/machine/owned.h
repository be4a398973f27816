#pragma once
// Objects that programs hold by their address. An address that is none of theirs is refused.

#include <memory>
#include <unordered_map>

namespace metaprof::emulator {

template <class T>
class Owned {
 public:
  T* adopt(std::unique_ptr<T> object) {
    T* const handle = object.get();
    all_.emplace(handle, std::move(object));
    return handle;
  }
  /// Null for an address that is none.
  T* known(T* handle) const { return all_.count(handle) ? handle : nullptr; }
  bool erase(T* handle) { return all_.erase(handle) > 0; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  std::unordered_map<T*, std::unique_ptr<T>> all_;
};

}  // namespace metaprof::emulator
