#include "profiler/allocator/driver.h"

#include <utility>

namespace metaprof {

bool AllocatorDriver::malloc(AllocationNumber number, std::uint64_t bytes, StreamId stream) {
  bool all = true;
  for (Follower& follower : followers_) {
    if (follower.blocks.size() <= number) follower.blocks.resize(number + std::size_t{1}, kNoBlock);
    follower.blocks[number] = follower.allocator->malloc(bytes, stream);
    all = all && follower.blocks[number] != kNoBlock;
  }
  return all;
}

void AllocatorDriver::free(AllocationNumber number) {
  for (Follower& follower : followers_) {
    const BlockId block = std::exchange(follower.blocks[number], kNoBlock);
    if (block != kNoBlock) follower.allocator->free(block);
  }
}

void AllocatorDriver::record_stream(AllocationNumber number, StreamId stream) {
  for (Follower& follower : followers_) {
    const BlockId block = follower.blocks[number];
    if (block != kNoBlock) follower.allocator->record_stream(block, stream);
  }
}

void AllocatorDriver::reset_peak() {
  for (Follower& follower : followers_) follower.allocator->reset_peak();
}

}  // namespace metaprof
