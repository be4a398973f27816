#pragma once
// A run as the caching allocator lives it: every request, release and segment with its address, and the
// segments as they are at the end or where memory runs out. What torch.cuda.memory._record_memory_history
// keeps.

#include <string>
#include <tuple>
#include <vector>

#include "meta/allocator/caching_allocator.h"
#include "meta/trace/trace.h"

namespace metaprof {

struct HistoryEvent {
  enum class Kind : uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    out_of_memory
  };
  Kind kind = Kind::alloc;
  uint64_t address = 0;
  uint64_t size =
      0;  ///< of a block: what was asked for, as the framework records it; of a segment: all of it
  StreamId stream = 0;
  uint32_t event = 0;  ///< of the trace
  uint32_t site = 0;   ///< index into AllocatorHistory::sites
};

/// What was at work.
struct HistorySite {
  std::string op, module, phase;  ///< may be empty
  friend bool operator<(const HistorySite& a, const HistorySite& b) {
    return std::tie(a.op, a.module, a.phase) < std::tie(b.op, b.module, b.phase);
  }
};

struct AllocatorHistory {
  std::vector<HistorySite> sites;
  std::vector<HistoryEvent> events;
  std::vector<SegmentSnapshot> segments;                   ///< at the end
  std::vector<std::pair<uint64_t, uint32_t>> block_sites;  ///< of blocks held then: address, site; by address
  int64_t free_at_failure = 0;                             ///< what the device has left at the end
};

/// The storages of one device. `options.record_segment_events` need not be set.
AllocatorHistory allocator_history(const Trace& trace, Device device, CachingAllocatorOptions options);

}  // namespace metaprof
