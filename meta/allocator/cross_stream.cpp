#include <algorithm>
#include <cassert>

#include "meta/allocator/caching_allocator.h"

// Blocks that other streams used: freed by the program they stay active until those uses are over.

namespace metaprof {

void CachingAllocator::record_stream(BlockNumber id, StreamId stream) {
  if (stream == blocks_[id].stream) return;
  assert(blocks_[id].exists && blocks_[id].allocated);
  const auto add = [&](std::vector<StreamId>& streams) {
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  };
  add(stream_uses_[id]);
  blocks_[id].used_elsewhere = true;
  if (!captures_.empty()) add(capture_stream_uses_[id]);
}

// An event for each stream that used the block; it becomes free when all are over.
void CachingAllocator::insert_events(BlockNumber id) {
  const auto uses = stream_uses_.extract(id);
  blocks_[id].used_elsewhere = false;
  if (uses.empty()) return;
  for (const StreamId stream : uses.mapped()) {
    ++blocks_[id].events;
    events_[stream].waiting.push_back(id);
  }
}

// Frees of a capture that has ended. Uses that were recorded during the capture are over with it.
void CachingAllocator::insert_deferred_events() {
  for (const BlockNumber id : std::exchange(deferred_, {})) {
    if (const auto captured = capture_stream_uses_.extract(id); !captured.empty()) {
      std::erase_if(stream_uses_[id], [&](StreamId stream) {
        return std::find(captured.mapped().begin(), captured.mapped().end(), stream) !=
               captured.mapped().end();
      });
    }
    insert_events(id);
    if (blocks_[id].events == 0) free_block(id);
  }
}

void CachingAllocator::finish_event(BlockNumber id) {
  if (--blocks_[id].events == 0) free_block(id);
}

// At a request: what is over is taken from each stream's queue, in its order.
void CachingAllocator::process_events() {
  if (!deferred_.empty()) insert_deferred_events();
  if (events_.empty()) return;
  for (auto it = events_.begin(); it != events_.end();) {
    StreamEvents& events = it->second;
    while (!events.waiting.empty() && (options_.events_complete_at_once || events.complete > 0)) {
      const BlockNumber id = events.waiting.front();
      events.waiting.pop_front();
      if (events.complete > 0) --events.complete;
      finish_event(id);
    }
    it = events.waiting.empty() ? events_.erase(it) : std::next(it);
  }
}

// Before cached memory is given back: waits for all uses, or for those of one private pool's blocks.
void CachingAllocator::synchronize_events(std::optional<PoolId> pool) {
  ++statistics_.num_sync_all_streams;
  insert_deferred_events();
  for (auto it = events_.begin(); it != events_.end();) {
    StreamEvents& events = it->second;
    std::deque<BlockNumber> others;
    std::size_t complete_others = 0;
    for (std::size_t i = 0; i < events.waiting.size(); ++i) {
      const BlockNumber id = events.waiting[i];
      if (pool && pools_[blocks_[id].pool].owner != pool) {
        others.push_back(id);
        if (i < events.complete) ++complete_others;
      } else {
        finish_event(id);
      }
    }
    events.waiting = std::move(others);
    events.complete = complete_others;
    it = events.waiting.empty() ? events_.erase(it) : std::next(it);
  }
}

void CachingAllocator::complete_events(StreamId stream) {
  if (const auto it = events_.find(stream); it != events_.end())
    it->second.complete = it->second.waiting.size();
}

void CachingAllocator::complete_events(StreamId stream, std::size_t uses) {
  if (const auto it = events_.find(stream); it != events_.end())
    it->second.complete = std::min(it->second.complete + uses, it->second.waiting.size());
}

bool CachingAllocator::is_waiting(BlockNumber id) const {
  const Block& block = blocks_[id];
  return block.exists && !block.allocated && (block.events > 0 || block.used_elsewhere);
}

bool CachingAllocator::finish_waiting(BlockNumber id) {
  if (!is_waiting(id)) return false;
  std::erase(deferred_, id);
  stream_uses_.erase(id);
  capture_stream_uses_.erase(id);
  for (auto it = events_.begin(); it != events_.end();) {
    std::deque<BlockNumber>& waiting = it->second.waiting;
    const auto at = std::find(waiting.begin(), waiting.end(), id);
    if (at != waiting.end()) {
      if (static_cast<std::size_t>(at - waiting.begin()) < it->second.complete) --it->second.complete;
      waiting.erase(at);
    }
    it = waiting.empty() ? events_.erase(it) : std::next(it);
  }
  blocks_[id].events = 0;
  blocks_[id].used_elsewhere = false;
  free_block(id);
  return true;
}

}  // namespace metaprof
