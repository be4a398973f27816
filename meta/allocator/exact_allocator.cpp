#include "meta/allocator/exact_allocator.h"

#include <algorithm>

namespace metaprof {

namespace {

void add(AllocatorNumber& number, int64_t amount) {
  number.current += amount;
  number.peak = std::max(number.peak, number.current);
}

}  // namespace

std::optional<BlockNumber> ExactAllocator::allocate(int64_t bytes, uint16_t) {
  add(live_, bytes);
  add(blocks_, 1);
  if (unused_.empty()) {
    bytes_.push_back(bytes);
    return static_cast<BlockNumber>(bytes_.size() - 1);
  }
  const BlockNumber block = unused_.back();
  unused_.pop_back();
  bytes_[block] = bytes;
  return block;
}

void ExactAllocator::free(BlockNumber block) {
  add(live_, -bytes_[block]);
  add(blocks_, -1);
  unused_.push_back(block);
}

void ExactAllocator::reset_peaks() {
  live_.peak = live_.current;
  blocks_.peak = blocks_.current;
}

AllocatorNumbers ExactAllocator::numbers() const {
  return {.allocated_bytes = live_,
          .requested_bytes = live_,
          .active_bytes = live_,
          .reserved_bytes = live_,
          .inactive_split_bytes = {},
          .allocation = blocks_,
          .segment = blocks_};
}

}  // namespace metaprof
