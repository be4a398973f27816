#include "backends/cuda/waiting_blocks.h"

#include <algorithm>
#include <utility>

namespace metaprof::cuda {

void WaitingBlocks::use(BlockNumber block, StreamId stream) {
  if (stream == allocator_.block(block).stream) return;
  std::vector<StreamId>& streams = uses_[block];
  if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
}

void WaitingBlocks::freed(BlockNumber block) {
  const auto uses = uses_.extract(block);
  if (uses.empty()) return;
  for (const StreamId stream : uses.mapped()) queues_[stream].emplace_back().event.record(stream_(stream));
}

void WaitingBlocks::process() {
  // The allocator has waited for all of them, before it gave memory back.
  const uint64_t synchronizations = allocator_.statistics().num_sync_all_streams;
  if (std::exchange(synchronizations_, synchronizations) != synchronizations) queues_.clear();
  for (auto& [stream, queue] : queues_) {
    size_t over = 0;
    for (; !queue.empty() && queue.front().event.is_over(); ++over) queue.pop_front();
    allocator_.complete_events(stream, over);
    for (Use& use : queue)
      if (!std::exchange(use.counted, true)) ++waited_;
  }
}

}  // namespace metaprof::cuda
