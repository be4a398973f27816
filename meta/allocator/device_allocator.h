#pragma once

#include <cstdint>
#include <optional>

namespace metaprof {

/// One number of an allocator: now, and its maximum since the peaks were reset.
struct AllocatorNumber {
  int64_t current = 0;
  int64_t peak = 0;
};

/// As torch.cuda.memory_stats() names them; bytes or counts.
struct AllocatorNumbers {
  AllocatorNumber allocated_bytes, requested_bytes, active_bytes, reserved_bytes, inactive_split_bytes;
  AllocatorNumber allocation, segment;  ///< numbers of blocks and of segments
};
/// All of them, in the order in which the lines of captured programs have them (docs/reference/program.md).
inline constexpr AllocatorNumber AllocatorNumbers::*kAllocatorNumbers[] = {
    &AllocatorNumbers::allocated_bytes,
    &AllocatorNumbers::requested_bytes,
    &AllocatorNumbers::active_bytes,
    &AllocatorNumbers::reserved_bytes,
    &AllocatorNumbers::inactive_split_bytes,
    &AllocatorNumbers::allocation,
    &AllocatorNumbers::segment};

/// Names a live block of a DeviceAllocator.
using BlockNumber = uint32_t;

/// Who hands out device memory: a strategy, to which others feed requests and frees.
class DeviceAllocator {
 public:
  virtual ~DeviceAllocator() = default;
  /// Nothing: there is not enough memory. `bytes` is at least 1.
  virtual std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) = 0;
  virtual void free(BlockNumber block) = 0;
  /// `stream` uses the block, too; it is reusable only after that work.
  virtual void record_stream(BlockNumber block, uint16_t stream) = 0;
  /// What is cached goes back to the device (torch.cuda.empty_cache).
  virtual void empty_cache() = 0;
  virtual void reset_peaks() = 0;
  virtual AllocatorNumbers numbers() const = 0;
};

}  // namespace metaprof
