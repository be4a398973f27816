#include "capture/emulator/machine/counters.h"

#include <atomic>
#include <cstring>

#include "capture/emulator/machine/devices.h"

namespace metaprof::emulator {
namespace {

constexpr const char* kNames[] = {"memory", "memory_peak",   "kernels",     "reads",  "read_bytes",
                                  "writes", "written_bytes", "collectives", "missing"};
static_assert(std::size(kNames) == size_t(Counter::count_));

using Counts = std::atomic<uint64_t>[size_t(Counter::count_)];
Counts counts[kMostDevices];

std::atomic<uint64_t>& of(int device, Counter counter) { return counts[device][size_t(counter)]; }

}  // namespace

void count(Counter counter, uint64_t by) {
  of(current_device(), counter).fetch_add(by, std::memory_order_relaxed);
}

void set_memory(int device, uint64_t bytes) {
  of(device, Counter::memory) = bytes;
  auto& peak = of(device, Counter::memory_peak);
  if (bytes > peak) peak = bytes;
}

}  // namespace metaprof::emulator

const char* metaprof_emulator_version() { return "1"; }

uint64_t metaprof_emulator_count(const char* what, int device) {
  using namespace metaprof::emulator;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (std::strcmp(kNames[i], what) != 0) continue;
    if (device >= 0 && device < kMostDevices) return of(device, Counter(i));
    uint64_t sum = 0;
    if (device == -1) {
      for (int d = 0; d < kMostDevices; ++d) sum += of(d, Counter(i));
      return sum;
    }
  }
  return ~uint64_t(0);
}

void metaprof_emulator_reset_peak(int device) {
  using namespace metaprof::emulator;
  for (int d = 0; d < kMostDevices; ++d)
    if (device == -1 || d == device) of(d, Counter::memory_peak) = of(d, Counter::memory).load();
}
