#include "profiler/allocator/lower_bound_allocator.h"

namespace metaprof {

BlockId LowerBoundAllocator::malloc(std::uint64_t bytes, StreamId) {
  if (bytes == 0) return kEmptyBlock;
  bytes_.increase(bytes);
  if (unused_blocks_.empty()) {
    sizes_.push_back(bytes);
    return static_cast<BlockId>(sizes_.size() - 1);
  }
  const BlockId block = unused_blocks_.back();
  unused_blocks_.pop_back();
  sizes_[block] = bytes;
  return block;
}

void LowerBoundAllocator::free(BlockId block) {
  if (block == kEmptyBlock) return;
  bytes_.decrease(sizes_[block]);
  unused_blocks_.push_back(block);
}

}  // namespace metaprof
