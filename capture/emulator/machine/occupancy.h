#pragma once
// How many blocks of a kernel a multiprocessor holds at once. The registers of a kernel are in its code, which nobody
// reads: they are assumed.

#include <algorithm>
#include <cstddef>

#include "capture/emulator/machine/devices.h"

namespace metaprof::emulator {

constexpr int kAssumedRegisters = 32;

inline int active_blocks(int threads, size_t shared_memory) {
  const Description& d = device_description();
  const int by_threads = d.threads_per_multiprocessor / std::max(threads, 1);
  const size_t reserved = d.sm >= 80 ? 1024 : 0;
  const int by_memory = shared_memory ? int(d.shared_memory_per_multiprocessor / (shared_memory + reserved))
                                      : d.blocks_per_multiprocessor;
  return std::max(1, std::min({by_threads, by_memory, d.blocks_per_multiprocessor}));
}

/// The compute capability of the code that a kernel would have: PyTorch's packages have code for 8.6, which 8.9 runs.
inline int binary_version() {
  const int sm = device_description().sm;
  return sm == 89 ? 86 : sm;
}

}  // namespace metaprof::emulator
