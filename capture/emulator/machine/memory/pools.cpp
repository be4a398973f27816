#include "capture/emulator/machine/memory/pools.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "capture/emulator/machine/devices.h"
#include "capture/emulator/machine/memory/memory.h"
#include "capture/emulator/machine/streams/streams.h"

namespace metaprof::emulator {

struct Pool {
  int device = 0;
  uint64_t reserved = 0, used = 0, reserved_high = 0, used_high = 0, threshold = 0;
  std::vector<std::pair<uint64_t, Moment>> freed;  ///< bytes that a stream may not be done with
  int reuse[4] = {0, 1, 1, 1};  ///< three permissions, by their attribute's number; they change nothing here
};

namespace {

// A pool takes memory in steps of this size: what cudaMemPoolAttrReservedMemCurrent of a real device counts in.
constexpr uint64_t kStep = uint64_t(32) << 20;
constexpr uint64_t kRounding = 512;
constexpr const char* kFunction = "cudaMallocAsync";

struct Block {
  Pool* pool;
  uint64_t bytes;
};

struct State {
  std::mutex mutex;  // taken before machine_mutex()
  std::map<Pool*, std::unique_ptr<Pool>> pools;
  Pool *standard[kMostDevices] = {}, *current[kMostDevices] = {};
  std::map<uintptr_t, Block> blocks;
};

State& state() {
  static auto* const kState = new State;
  return *kState;
}

Pool* add(int device) {
  auto pool = std::make_unique<Pool>();
  pool->device = device;
  Pool* const handle = pool.get();
  state().pools.emplace(handle, std::move(pool));
  return handle;
}

Pool* known(Pool* pool) { return state().pools.count(pool) ? pool : nullptr; }

Pool* standard(int device) {
  Pool*& pool = state().standard[device];
  if (!pool) pool = add(device);
  return pool;
}

// Bytes that were freed, and that a stream still works with.
uint64_t busy(Pool& pool) {
  auto& freed = pool.freed;
  freed.erase(std::remove_if(freed.begin(), freed.end(), [](const auto& f) { return is_complete(f.second); }),
              freed.end());
  uint64_t sum = 0;
  for (const auto& [bytes, moment] : freed) sum += bytes;
  return sum;
}

void trim(Pool& pool, uint64_t keep) {
  if (pool.reserved <= keep) return;  // before rounding up: "everything" is the largest number
  const uint64_t held = std::min(pool.used + busy(pool), pool.reserved);
  const uint64_t least = (std::max(keep, held) + kStep - 1) / kStep * kStep;
  if (pool.reserved <= least) return;
  give_back_bytes(pool.device, pool.reserved - least, kFunction);
  pool.reserved = least;
}

}  // namespace

Pool* default_pool(int device) {
  const std::lock_guard lock(state().mutex);
  return standard(device);
}

Pool* current_pool(int device) {
  const std::lock_guard lock(state().mutex);
  return state().current[device] ? state().current[device] : standard(device);
}

Error set_current_pool(int device, Pool* pool) {
  const std::lock_guard lock(state().mutex);
  if (!known(pool) || pool->device != device) return invalid_value;
  state().current[device] = pool;
  return success;
}

Error make_pool(Pool** out, int device) {
  const std::lock_guard lock(state().mutex);
  *out = add(device);
  return success;
}

Error destroy_pool(Pool* pool) {
  const std::lock_guard lock(state().mutex);
  if (!known(pool) || pool == state().standard[pool->device]) return invalid_value;
  if (state().current[pool->device] == pool) state().current[pool->device] = nullptr;
  for (auto& [address, block] : state().blocks)
    if (block.pool == pool) return success;  // it goes with its last block: kept here
  trim(*pool, 0);
  state().pools.erase(pool);
  return success;
}

Error allocate_from_pool(void** out, Pool* pool, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  *out = nullptr;
  if (!known(pool)) return invalid_value;
  if (bytes == 0) return success;
  const uint64_t size = (bytes + kRounding - 1) / kRounding * kRounding;
  if (pool->used + size > pool->reserved) {
    const uint64_t more = (pool->used + size - pool->reserved + kStep - 1) / kStep * kStep;
    if (!take_bytes(pool->device, more, kFunction)) return out_of_memory;
    pool->reserved += more;
  }
  const uintptr_t address = borrow_addresses(pool->device, size);
  if (address == 0) return out_of_memory;
  pool->used += size;
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  pool->used_high = std::max(pool->used_high, pool->used);
  state().blocks[address] = {pool, size};
  *out = reinterpret_cast<void*>(address);
  return success;
}

Error free_to_pool(void* address, const Moment& moment) {
  const std::lock_guard lock(state().mutex);
  const auto it = state().blocks.find(uintptr_t(address));
  if (it == state().blocks.end()) return invalid_value;
  Pool& pool = *it->second.pool;
  pool.used -= it->second.bytes;
  if (!is_complete(moment)) pool.freed.emplace_back(it->second.bytes, moment);
  release(it->first, Kind::device, kFunction);
  state().blocks.erase(it);
  return success;
}

Error trim_pool(Pool* pool, size_t keep) {
  const std::lock_guard lock(state().mutex);
  if (!known(pool)) return invalid_value;
  trim(*pool, keep);
  return success;
}

void pools_wait(int device) {
  const std::lock_guard lock(state().mutex);
  for (auto& [handle, pool] : state().pools)
    if (pool->device == device) trim(*pool, pool->threshold);
}

Error pool_attribute(Pool* pool, int attribute, void* value) {
  const std::lock_guard lock(state().mutex);
  if (!known(pool) || !value) return invalid_value;
  auto* const number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case 1:
    case 2:
    case 3: *static_cast<int*>(value) = pool->reuse[attribute]; return success;
    case 4: *number = pool->threshold; return success;
    case 5: *number = pool->reserved; return success;
    case 6: *number = pool->reserved_high; return success;
    case 7: *number = pool->used; return success;
    case 8: *number = pool->used_high; return success;
    default: return invalid_value;
  }
}

Error set_pool_attribute(Pool* pool, int attribute, const void* value) {
  const std::lock_guard lock(state().mutex);
  if (!known(pool) || !value) return invalid_value;
  switch (attribute) {
    case 1:
    case 2:
    case 3: pool->reuse[attribute] = *static_cast<const int*>(value); return success;
    case 4: pool->threshold = *static_cast<const uint64_t*>(value); return success;
    case 6: pool->reserved_high = pool->reserved; return success;  // only 0 may be written: it starts again
    case 8: pool->used_high = pool->used; return success;
    default: return invalid_value;
  }
}

}  // namespace metaprof::emulator
