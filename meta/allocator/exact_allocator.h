#pragma once

#include <vector>

#include "meta/allocator/device_allocator.h"

namespace metaprof {

/// Takes what is asked for and nothing else, and gives it back at once: no rounding, no cache, no limit. No
/// allocator can do with less, so what the caching allocator needs beyond it is rounding and fragmentation.
class ExactAllocator final : public DeviceAllocator {
 public:
  std::optional<BlockNumber> allocate(int64_t bytes, uint16_t stream) override;
  void free(BlockNumber block) override;
  void record_stream(BlockNumber, uint16_t) override {}
  void empty_cache() override {}
  void reset_peaks() override;
  AllocatorNumbers numbers() const override;

 private:
  std::vector<int64_t> bytes_;  // by block
  std::vector<BlockNumber> unused_;
  AllocatorNumber live_, blocks_;
};

}  // namespace metaprof
