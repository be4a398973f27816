#pragma once
// Blocks that the program has freed while work of other streams may still use them (c10/cuda/CUDACachingAllocator.cpp,
// insert_events and process_events): the device says when that work is over.

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "backends/cuda/device.h"
#include "meta/allocator/caching_allocator.h"

namespace metaprof::cuda {

class WaitingBlocks {
 public:
  /// `allocator`: whose events do not complete at once; it must outlive this object. `stream`: the device's of a number.
  WaitingBlocks(CachingAllocator& allocator, std::function<CUstream(StreamId)> stream)
      : allocator_(allocator), stream_(std::move(stream)) {}

  /// The block is used on this stream, too.
  void use(BlockNumber block, StreamId stream);
  /// The block was freed.
  void freed(BlockNumber block);
  /// Before a request: says to the allocator which uses are over.
  void process();
  /// How many uses were not over at the next request.
  int64_t waited() const { return waited_; }

 private:
  struct Use {
    CudaEvent event;
    bool counted = false;
  };
  CachingAllocator& allocator_;
  std::function<CUstream(StreamId)> stream_;
  std::map<BlockNumber, std::vector<StreamId>> uses_;  // of blocks that are held
  std::map<StreamId, std::deque<Use>> queues_;         // as the allocator has them
  uint64_t synchronizations_ = 0;
  int64_t waited_ = 0;
};

}  // namespace metaprof::cuda
