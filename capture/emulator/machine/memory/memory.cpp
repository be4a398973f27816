#include "capture/emulator/machine/memory/memory.h"

#include <map>

#include "capture/emulator/machine/counters.h"
#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/log.h"
#include "capture/emulator/machine/streams/clock.h"
#include "capture/emulator/machine/streams/durations.h"

namespace metaprof::emulator {
namespace {

constexpr size_t kMiB = size_t(1) << 20, kTiB = size_t(1) << 40;
constexpr size_t kRounding = 512;
// Where nothing of the host lies: programs are below and around 0x55..., libraries and stacks at 0x7f...
constexpr uintptr_t kBase = 16 * kTiB, kWindow = 4 * kTiB;  // a window for each device
constexpr uintptr_t kReservations = 104 * kTiB, kReservationsEnd = 120 * kTiB;

size_t up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Hands addresses out as a real device does: downwards; those of 2 MiB and less upwards within blocks of 32 MiB; an
// address that was freed is not given again (until the window is used up). It decides which of equal free blocks a
// caching allocator takes, and so what it splits and reserves.
class Window {
 public:
  explicit Window(int device) : bottom_(kBase + size_t(device) * kWindow), lowest_(bottom_ + kWindow) {}

  uintptr_t give(size_t bytes) {
    const size_t alignment = bytes >= kMiB ? 2 * kMiB : kRounding;
    if (bytes > 2 * kMiB) {
      if (!has(bytes + alignment)) return 0;
      return lowest_ = (lowest_ - bytes) / alignment * alignment;
    }
    if (piece_ % kBlock == 0) {
      if (!has(2 * kBlock)) return 0;
      piece_ = lowest_ = (lowest_ - kBlock) / kBlock * kBlock;
    }
    const uintptr_t address = piece_;
    piece_ += 2 * kMiB;
    return address;
  }
  /// From the top again.
  void restart() {
    lowest_ = bottom_ + kWindow;
    piece_ = 0;
  }

 private:
  static constexpr size_t kBlock = 32 * kMiB;
  bool has(size_t bytes) const { return lowest_ - bottom_ > bytes; }

  uintptr_t bottom_, lowest_, piece_ = 0;
};

struct Memory {
  std::map<uintptr_t, Range> ranges;  // by where they begin; they do not overlap
  std::map<int, Window> windows;
  size_t used[kMostDevices] = {};
  uintptr_t next_reservation = kReservations;

  const Range* find(uintptr_t address) const {
    auto it = ranges.upper_bound(address);
    if (it == ranges.begin()) return nullptr;
    const Range& range = (--it)->second;
    return address - range.base < range.bytes ? &range : nullptr;
  }
  bool overlaps(uintptr_t address, size_t bytes) const {
    const auto next = ranges.lower_bound(address);
    return find(address) || (next != ranges.end() && next->first < address + bytes);
  }
  uintptr_t addresses(int device, size_t bytes) {
    Window& window = windows.try_emplace(device, device).first->second;
    // A second time round, what is still held is passed over.
    for (int rounds = 0; rounds < 2;) {
      const uintptr_t address = window.give(bytes);
      if (address && !overlaps(address, bytes)) return address;
      if (!address) window.restart(), ++rounds;
    }
    return 0;
  }
  bool take(int device, size_t bytes) {
    if (bytes > memory_total() - environment().context - used[device]) return false;
    set_memory(device, used[device] += bytes);
    return true;
  }
  void give_back(int device, size_t bytes) { set_memory(device, used[device] -= bytes); }
};

Memory& memory() {
  static auto* const kMemory = new Memory;
  return *kMemory;
}

}  // namespace

size_t memory_total() { return device_description().memory; }

size_t memory_in_use(int device) {
  const std::lock_guard lock(machine_mutex());
  return environment().context + memory().used[device];
}

bool is_device_address(const void* address) {
  const auto a = uintptr_t(address);
  return (a >= kBase && a < kBase + kMostDevices * kWindow) || (a >= kReservations && a < kReservationsEnd);
}

uintptr_t allocate(int device, size_t bytes, const char* function) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  if (bytes > memory_total() || !m.take(device, up(bytes, kRounding))) {
    log_out_of_memory(device, bytes, function);
    return 0;
  }
  const size_t size = up(bytes, kRounding);
  const uintptr_t address = m.addresses(device, size);
  if (address == 0) {  // the window is full of live blocks: more than 4 TiB
    m.give_back(device, size);
    return 0;
  }
  m.ranges[address] = {address, size, Kind::device, device, size};
  spend(seconds_to_take(false, static_cast<double>(size)));
  log_taken(device, address, size, function);
  return address;
}

bool release(uintptr_t address, Kind kind, const char* function) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  const auto it = m.ranges.find(address);
  if (it == m.ranges.end() || it->second.kind != kind) return false;
  const Range range = it->second;
  m.ranges.erase(it);
  spend(seconds_to_give_back(kind != Kind::device, static_cast<double>(range.bytes)));
  if (range.charged) {
    m.give_back(range.device, range.charged);
    log_given_back(range.device, address, range.charged, function);
  }
  return true;
}

bool add_host_range(uintptr_t address, size_t bytes, Kind kind, int device) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  if (m.overlaps(address, bytes)) return false;
  m.ranges[address] = {address, bytes, kind, device, 0};
  spend(seconds_to_take(true, static_cast<double>(bytes)));
  return true;
}

std::optional<Range> find_range(const void* address) {
  const std::lock_guard lock(machine_mutex());
  const Range* range = memory().find(uintptr_t(address));
  return range ? std::optional(*range) : std::nullopt;
}

uintptr_t borrow_addresses(int device, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  const uintptr_t address = m.next_reservation;
  if (bytes > kReservationsEnd - address) return 0;
  m.next_reservation += up(bytes, kRounding);
  m.ranges[address] = {address, up(bytes, kRounding), Kind::device, device, 0};
  return address;
}

uintptr_t reserve_addresses(size_t bytes, size_t alignment) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  const uintptr_t address = up(m.next_reservation, std::max(alignment, 2 * kMiB));
  const size_t size = up(bytes, 2 * kMiB);
  if (bytes > kReservationsEnd - address) return 0;
  m.next_reservation = address + size;
  return address;
}

bool take_bytes(int device, size_t bytes, const char* function) {
  const std::lock_guard lock(machine_mutex());
  if (bytes > memory_total() || !memory().take(device, bytes)) {
    log_out_of_memory(device, bytes, function);
    return false;
  }
  log_taken(device, 0, bytes, function);
  return true;
}

void give_back_bytes(int device, size_t bytes, const char* function) {
  const std::lock_guard lock(machine_mutex());
  memory().give_back(device, bytes);
  log_given_back(device, 0, bytes, function);
}

void add_mapping(uintptr_t address, size_t bytes, int device) {
  const std::lock_guard lock(machine_mutex());
  memory().ranges[address] = {address, bytes, Kind::mapped, device, 0};
}

bool remove_mapping(uintptr_t address, size_t bytes) {
  const std::lock_guard lock(machine_mutex());
  Memory& m = memory();
  bool any = false;
  for (auto it = m.ranges.lower_bound(address); it != m.ranges.end() && it->first < address + bytes;) {
    any = any || it->second.kind == Kind::mapped;
    it = it->second.kind == Kind::mapped ? m.ranges.erase(it) : std::next(it);
  }
  return any;
}

}  // namespace metaprof::emulator
