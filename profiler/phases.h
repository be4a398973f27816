#pragma once
// Device memory at the end of each part of the step plan, and its peak within, as an allocator sees it: the
// rows that a recording of the framework's own allocator has.

#include <optional>
#include <string>
#include <vector>

#include "profiler/cursor.h"

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

/// Names a live block of a DeviceAllocator.
using BlockNumber = uint32_t;

/// Who hands out device memory.
class DeviceAllocator {
 public:
  virtual ~DeviceAllocator() = default;
  /// Nothing: there is not enough memory. `bytes` is at least 1.
  virtual std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) = 0;
  virtual void free(BlockNumber block) = 0;
  /// `stream` uses the block, too; it is reusable only after that work.
  virtual void record_stream(BlockNumber block, uint16_t stream) = 0;
  virtual void reset_peaks() = 0;
  virtual AllocatorNumbers numbers() const = 0;
};

/// Takes what is asked for and nothing else: no rounding, no cache, no limit.
class ExactAllocator final : public DeviceAllocator {
 public:
  std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) override;
  void free(BlockNumber block) override;
  void record_stream(BlockNumber, uint16_t) override {}
  void reset_peaks() override;
  AllocatorNumbers numbers() const override;

 private:
  std::vector<int64_t> bytes_;  // by block
  AllocatorNumber live_, blocks_;
};

struct PhaseRow {
  StepPart part;
  AllocatorNumbers numbers;
};

/// A request that failed.
struct OutOfMemory {
  StepPart part;
  std::string op, module;
  Bytes requested;
};

struct Phases {
  std::vector<PhaseRow> rows;  ///< up to the one in which memory ran out
  std::optional<OutOfMemory> out_of_memory;
  AllocatorNumbers peak;  ///< `peak`: the largest of all rows; `current`: at the end
};

/// Feeds the storages of one device to an allocator.
Phases replay(const Trace& trace, DeviceType device, DeviceAllocator& allocator);

/// Whether a device with this memory can run it. Without a limit of its own an allocator never fails, so its
/// largest reservation decides.
bool fits(const Phases& phases, Bytes device_memory);

}  // namespace metaprof
