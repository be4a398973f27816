#pragma once

#include <vector>

#include "profiler/allocator/allocator.h"
#include "profiler/allocator/statistics.h"

namespace metaprof {

// Takes exactly what is asked for and returns it at once: no rounding, no segments, no fragmentation, no limit.
// No allocator of the same requests can need less, so what the caching allocator needs beyond it is its own
// cost.
class LowerBoundAllocator final : public Allocator {
 public:
  BlockId malloc(std::uint64_t bytes, StreamId stream) override;
  void free(BlockId block) override;
  void record_stream(BlockId, StreamId) override {}
  void reset_peak() override { bytes_.reset_peak(); }
  MemoryUse current() const override { return {bytes_.current, bytes_.current, bytes_.current}; }
  MemoryUse peak() const override { return {bytes_.peak, bytes_.peak, bytes_.peak}; }

  const Statistic& bytes() const { return bytes_; }

 private:
  std::vector<std::uint64_t> sizes_;   // of live blocks
  std::vector<BlockId> unused_blocks_;
  Statistic bytes_;
};

}  // namespace metaprof
