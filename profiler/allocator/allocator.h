#pragma once

#include <cstdint>
#include <limits>

namespace metaprof {

// Names a live block of an allocator; valid from malloc until free.
using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = std::numeric_limits<BlockId>::max();  // out of memory
inline constexpr BlockId kEmptyBlock = kNoBlock - 1;                      // of a request of 0 bytes; takes nothing

// Streams are numbered in the order of their handles; 0 is the default stream.
using StreamId = std::uint32_t;

// Bytes that every strategy can tell.
struct MemoryUse {
  std::uint64_t requested = 0;  // what was asked for
  std::uint64_t allocated = 0;  // what the blocks take
  std::uint64_t reserved = 0;   // what the allocator holds of the device

  bool operator==(const MemoryUse&) const = default;
};

// A strategy of handing out device memory. Requests are fed to it by an AllocatorDriver, a replay or a test.
class Allocator {
 public:
  virtual ~Allocator() = default;

  // A block for `bytes` to be used on `stream`, kEmptyBlock for 0 bytes, kNoBlock if there is no memory left.
  virtual BlockId malloc(std::uint64_t bytes, StreamId stream) = 0;
  virtual void free(BlockId block) = 0;

  // `stream` uses the block, too: what was freed may be given to others only when that use has ended.
  virtual void record_stream(BlockId block, StreamId stream) = 0;

  // Every peak becomes the current value.
  virtual void reset_peak() = 0;

  virtual MemoryUse current() const = 0;
  // Each field's maximum since the last reset_peak; the maxima need not fall together.
  virtual MemoryUse peak() const = 0;

 protected:
  Allocator() = default;
  Allocator(const Allocator&) = default;
  Allocator& operator=(const Allocator&) = default;
};

}  // namespace metaprof
