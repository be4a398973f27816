#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "meta/allocator/block.h"

namespace metaprof {

// Name of a private pool, as the framework numbers them; {0, 0} is the default pool.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  bool is_default() const { return first == 0 && second == 0; }
  bool operator==(const PoolId&) const = default;
  bool operator<(const PoolId& other) const {
    return std::tie(first, second) < std::tie(other.first, other.second);
  }
};

// The allocator got memory from the device or gave it back.
struct SegmentEvent {
  enum class Kind : std::uint8_t { allocate, free, map, unmap };
  Kind kind = Kind::allocate;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  StreamId stream = 0;
  PoolId pool;

  bool operator==(const SegmentEvent&) const = default;
};

struct BlockSnapshot {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;  // 0 for free blocks
  bool allocated = false;       // held by the program
  bool active = false;          // held, or freed and waiting for other streams
};

// A segment as torch.cuda.memory_snapshot() shows it.
struct SegmentSnapshot {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  StreamId stream = 0;
  PoolId pool;
  bool large = false;
  bool expandable = false;
  std::vector<BlockSnapshot> blocks;
};

}  // namespace metaprof
