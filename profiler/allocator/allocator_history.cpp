#include "profiler/allocator/allocator_history.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "meta/trace/calls.h"
#include "profiler/storages/cursor.h"

namespace metaprof {
namespace {

class Recorder {
 public:
  Recorder(const Trace& trace, Device device, CachingAllocatorOptions options)
      : trace_(trace), device_(device), cursor_(trace) {
    options.record_segment_events = true;
    allocator_ = CachingAllocator(options);
  }

  AllocatorHistory run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      cursor_.pass(event);
      at_ = static_cast<uint32_t>(i);
      if (!feed(event)) break;
    }
    history_.segments = allocator_.snapshot();
    history_.free_at_failure = static_cast<int64_t>(allocator_.device().unused());
    for (const auto& [storage, block] : blocks_)
      history_.block_sites.emplace_back(allocator_.block(block).address, site_of_[storage]);
    std::sort(history_.block_sites.begin(), history_.block_sites.end());
    return std::move(history_);
  }

 private:
  bool feed(const Event& event) {
    if (event.kind == Event::Kind::alloc)
      return trace_.storages[event.id].device != device_ || trace_.bytes(event.id).count == 0 ||
             allocate(event);
    if (event.kind == Event::Kind::call) {
      if (trace_.text(trace_.calls[event.id].op) == kEmptyCache) empty_cache();
      return true;
    }
    const auto found = blocks_.find(event.id);
    if (found == blocks_.end()) return true;
    if (event.kind == Event::Kind::free) {
      release(found->second);
      blocks_.erase(found);
    } else if (event.kind == Event::Kind::record_stream) {
      allocator_.record_stream(found->second, event.stream);
    }
    return true;
  }

  void empty_cache() {
    allocator_.empty_cache();
    add_segments(site_now());
  }

  bool allocate(const Event& event) {
    const uint32_t site = site_now();
    const int64_t bytes = trace_.bytes(event.id).count;
    const auto block = allocator_.allocate(bytes, event.stream);
    add_segments(site);
    if (!block) {
      add(HistoryEvent::Kind::out_of_memory, 0, static_cast<uint64_t>(bytes), event.stream, site);
      return false;
    }
    blocks_[event.id] = *block;
    site_of_[event.id] = site;
    const Block& made = allocator_.block(*block);
    add(HistoryEvent::Kind::alloc, made.address, made.requested, event.stream, site);
    return true;
  }

  void release(BlockNumber number) {
    const Block block = allocator_.block(number);
    const uint32_t site = site_now();
    add(HistoryEvent::Kind::free_requested, block.address, block.requested, block.stream, site);
    allocator_.free(number);
    add(HistoryEvent::Kind::free_completed, block.address, block.requested, block.stream, site);
    add_segments(site);
  }

  void add_segments(uint32_t site) {
    for (const SegmentEvent& segment : allocator_.take_segment_events()) {
      HistoryEvent::Kind kind = HistoryEvent::Kind::segment_alloc;
      switch (segment.kind) {
        case SegmentEvent::Kind::allocate: break;
        case SegmentEvent::Kind::free: kind = HistoryEvent::Kind::segment_free; break;
        case SegmentEvent::Kind::map: kind = HistoryEvent::Kind::segment_map; break;
        case SegmentEvent::Kind::unmap: kind = HistoryEvent::Kind::segment_unmap; break;
      }
      add(kind, segment.address, segment.size, segment.stream, site);
    }
  }

  void add(HistoryEvent::Kind kind, uint64_t address, uint64_t size, StreamId stream, uint32_t site) {
    history_.events.push_back({kind, address, size, stream, at_, site});
  }

  uint32_t site_now() {
    HistorySite site{std::string(cursor_.op()), std::string(cursor_.module()),
                     std::string(to_string(cursor_.part().phase))};
    const auto [found, is_new] = sites_.try_emplace(site, static_cast<uint32_t>(history_.sites.size()));
    if (is_new) history_.sites.push_back(std::move(site));
    return found->second;
  }

  const Trace& trace_;
  const Device device_;
  Cursor cursor_;
  CachingAllocator allocator_;
  AllocatorHistory history_;
  uint32_t at_ = 0;
  std::map<HistorySite, uint32_t> sites_;
  std::unordered_map<uint32_t, BlockNumber> blocks_;  // by storage
  std::unordered_map<uint32_t, uint32_t> site_of_;
};

}  // namespace

AllocatorHistory allocator_history(const Trace& trace, Device device, CachingAllocatorOptions options) {
  return Recorder(trace, device, options).run();
}

}  // namespace metaprof
