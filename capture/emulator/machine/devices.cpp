#include "capture/emulator/machine/devices.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "capture/emulator/machine/log.h"

namespace metaprof::emulator {
namespace {

thread_local int thread_device = 0;
std::atomic<bool> used, forked_after_use;
std::atomic<bool> active[kMostDevices];

const std::vector<int>& devices() {
  static const auto* const kDevices =
      new std::vector<int>(visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), environment().device_count));
  return *kDevices;
}

void before_fork() { machine_mutex().lock(); }
void in_parent() { machine_mutex().unlock(); }
void in_child() {
  machine_mutex().unlock();
  if (used) forked_after_use = true;
}
[[maybe_unused]] const int kRegistered = pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

std::mutex& machine_mutex() {
  static auto* const kMutex = new std::mutex;
  return *kMutex;
}

Error enter() {
  if (forked_after_use.load(std::memory_order_relaxed)) return not_initialized;
  if (!used.load(std::memory_order_relaxed)) {
    used = true;  // first: a child of a fork in the middle of what follows must not wait for its end
    environment();
  }
  return success;
}

Error enter_initialized() { return used.load(std::memory_order_relaxed) ? enter() : not_initialized; }

int device_count() { return int(devices().size()); }
int physical_device(int device) { return devices().at(size_t(device)); }
int current_device() { return thread_device; }

Error set_current_device(int device) {
  if (device_count() == 0) return no_device;
  if (device < 0 || device >= device_count()) return invalid_device;
  thread_device = device;
  return success;
}

bool is_active(int device) { return device >= 0 && device < kMostDevices && active[device]; }

void activate(int device) {
  if (!active[device].load(std::memory_order_relaxed) && !active[device].exchange(true))
    log_device(device, device_description().memory);
}

void device_uuid(int device, unsigned char* bytes) {
  constexpr char name[] = "metaprof-device";  // 15 letters
  std::copy_n(name, 15, bytes);
  bytes[15] = static_cast<unsigned char>(physical_device(device));
}

// The numbers are CUDA's CUdevice_attribute.
int device_attribute(int attribute, int device) {
  const Description& d = device_description();
  switch (attribute) {
    case 1:
    case 2:
    case 3: return 1024;        // threads of a block; its x, y
    case 4: return 64;          // z of a block
    case 5: return 2147483647;  // x of a grid; its y, z
    case 6:
    case 7: return 65535;
    case 8: return 49152;        // shared memory of a block without opt-in
    case 9: return 65536;        // constant memory
    case 10: return 32;          // warp
    case 11: return 2147483647;  // pitch
    case 12: return 65536;       // registers of a block
    case 13: return d.clock_khz;
    case 14:
    case 30: return 512;  // alignment of textures, surfaces
    case 15: return 1;    // copies overlap with kernels
    case 16: return d.multiprocessors;
    case 19: return 1;                            // maps host memory
    case 31: return 1;                            // kernels run concurrently
    case 32: return 1;                            // ECC
    case 33: return physical_device(device) + 1;  // PCI bus
    case 36: return d.memory_clock_khz;
    case 37: return d.memory_bus_bits;
    case 38: return d.l2_cache;
    case 39: return d.threads_per_multiprocessor;
    case 40: return 3;   // copy engines
    case 41: return 1;   // one address space
    case 51: return 32;  // pitch alignment of textures
    case 75: return d.sm / 10;
    case 76: return d.sm % 10;
    case 78:
    case 79:
    case 80: return 1;  // stream priorities, L1 for globals and locals
    case 81: return int(d.shared_memory_per_multiprocessor);
    case 82: return d.registers_per_multiprocessor;
    case 83: return 1;  // managed memory
    case 89:
    case 90:
    case 91: return 1;  // concurrent managed access, preemption, registered host pointers
    case 92:
    case 93:
    case 94: return 1;  // operations of streams on memory
    case 95: return 1;  // cooperative launch
    case 97: return int(d.shared_memory_per_block);
    case 99: return 1;   // registers host memory
    case 102: return 1;  // virtual memory management
    case 106: return d.blocks_per_multiprocessor;
    case 108: return d.l2_cache / 4 * 3;     // L2 that can be set aside
    case 111: return d.sm >= 80 ? 1024 : 0;  // shared memory of a block that the system takes
    case 113:
    case 114:
    case 115: return 1;                   // read-only registration, timeline semaphores, memory pools
    case 120: return d.sm >= 90 ? 1 : 0;  // clusters
    case 121:
    case 122:
    case 123:
    case 125: return 1;
    case 126: return d.sm >= 90 ? 4 : 1;  // synchronisation domains
    case 127: return d.sm >= 90 ? 1 : 0;  // tensor maps
    case 129: return 1;                   // unified function pointers
    case 131:
    case 134: return -1;  // NUMA nodes
    default: return 0;
  }
}

}  // namespace metaprof::emulator
