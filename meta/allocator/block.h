#pragma once

#include <cstdint>
#include <vector>

#include "meta/allocator/device_allocator.h"

namespace metaprof {

inline constexpr BlockNumber kNoBlock = ~BlockNumber{0};

// Streams are numbered in the order of their handles; 0 is the default stream.
using StreamId = std::uint16_t;

// Index of a BlockPool within the caching allocator.
using PoolIndex = std::uint32_t;
// Index of an expandable segment; kNoExpandable: the block lies in an ordinary segment.
using ExpandableIndex = std::uint32_t;
inline constexpr ExpandableIndex kNoExpandable = ~ExpandableIndex{0};

// A contiguous part of a segment: held by the program, waiting for other streams, free, or (in an expandable
// segment) without memory behind it. The blocks of a segment are linked in the order of their addresses.
struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t place = 0;                 // among free blocks of its stream and size (FreeBlockOrder)
  std::uint64_t requested = 0;             // bytes that the program asked for
  std::uint64_t lookups_at_insertion = 0;  // of its pool, when the block became free; its age follows from it
  BlockNumber previous = kNoBlock;
  BlockNumber next = kNoBlock;
  PoolIndex pool = 0;
  StreamId stream = 0;  // on which it may be used without waiting
  ExpandableIndex expandable = kNoExpandable;
  std::uint32_t events = 0;     // uses on other streams that were not over when it was freed
  bool allocated = false;       // held by the program
  bool mapped = true;           // false: addresses only
  bool used_elsewhere = false;  // other streams are recorded for it
  bool exists = false;

  bool is_split() const { return previous != kNoBlock || next != kNoBlock; }
  bool is_expandable() const { return expandable != kNoExpandable; }
  // Neither held nor waited for; such neighbours are merged.
  bool is_available() const { return !allocated && events == 0 && !used_elsewhere; }
};

// Owns the blocks and hands out their numbers. References are valid until the next make().
class BlockTable {
 public:
  Block& operator[](BlockNumber id) { return blocks_[id]; }
  const Block& operator[](BlockNumber id) const { return blocks_[id]; }

  BlockNumber make() {
    BlockNumber id = first_unused_;
    if (id == kNoBlock) {
      id = static_cast<BlockNumber>(blocks_.size());
      blocks_.emplace_back();
    } else {
      first_unused_ = blocks_[id].next;
      blocks_[id] = Block{};
    }
    blocks_[id].exists = true;
    return id;
  }

  void remove(BlockNumber id) {
    blocks_[id].exists = false;
    blocks_[id].next = first_unused_;
    first_unused_ = id;
  }

  // Numbers below this may exist.
  BlockNumber end() const { return static_cast<BlockNumber>(blocks_.size()); }

 private:
  std::vector<Block> blocks_;
  BlockNumber first_unused_ = kNoBlock;
};

}  // namespace metaprof
