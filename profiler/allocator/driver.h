#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/allocator/allocator.h"

namespace metaprof {

// Number of an allocation within its source (a trace, a recording), chosen by the source: dense, from 0.
using AllocationNumber = std::uint32_t;

// Feeds one program's requests and frees to several allocators side by side, each of which knows the blocks by
// names of its own. A request that an allocator cannot serve is noted, and its free is then ignored there.
class AllocatorDriver {
 public:
  // The allocator must outlive the driver and must be added before the first request.
  void add(Allocator& allocator) { followers_.push_back({&allocator, {}}); }

  // False if an allocator is out of memory.
  bool malloc(AllocationNumber number, std::uint64_t bytes, StreamId stream = 0);
  void free(AllocationNumber number);
  void record_stream(AllocationNumber number, StreamId stream);
  void reset_peak();

  // The block by which the n-th added allocator knows a live allocation.
  BlockId block(std::size_t n, AllocationNumber number) const { return followers_[n].blocks[number]; }

 private:
  struct Follower {
    Allocator* allocator;
    std::vector<BlockId> blocks;  // by AllocationNumber; kNoBlock: not live
  };
  std::vector<Follower> followers_;
};

}  // namespace metaprof
