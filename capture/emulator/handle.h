#pragma once
// Handles that programs pass around and nobody looks behind.

#include <atomic>
#include <cstdint>

namespace metaprof::emulator {

/// A handle like no other. It owns nothing.
inline void* next_handle() {
  static std::atomic<uintptr_t> next = 0x10000;
  return reinterpret_cast<void*>(next.fetch_add(16));
}

/// The result of a call that makes one.
inline int give_handle(void** out) {
  *out = next_handle();
  return 0;
}

/// A query that is answered with no bytes.
template <class T>
int no_bytes(T* out) {
  if (out) *out = 0;
  return 0;
}

}  // namespace metaprof::emulator
