#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meta/allocator/alloc_conf.h"
#include "meta/allocator/block.h"
#include "meta/allocator/device_allocator.h"
#include "meta/allocator/device_memory.h"
#include "meta/allocator/failed_request.h"
#include "meta/allocator/free_block_order.h"
#include "meta/allocator/free_blocks.h"
#include "meta/allocator/snapshot.h"
#include "meta/allocator/statistics.h"

namespace metaprof {

struct CachingAllocatorOptions {
  AllocConf conf = {};
  DeviceMemoryOptions device = {};
  FreeBlockOrder order = FreeBlockOrder::address;
  int device_index = 0;  // appears in out-of-memory messages only
  // true: uses on other streams are over by the time of the next request (what an idle device would show);
  // false: they last until complete_events or finish_waiting says so.
  bool events_complete_at_once = true;
  bool record_segment_events = false;  // for take_segment_events
};

// PyTorch 2.11's CUDACachingAllocator of one device as an algorithm: rounding, small and large pools, best
// fit, split and merge, segments, uses on other streams, retry after releasing the cache, garbage collection,
// expandable segments and private pools. Given the same requests in the same order on a device that hands out
// the same addresses, every address, segment and statistic is the framework's own, with two exceptions:
// several blocks that become free at one request do so in the order of their streams (the framework's order
// is that of a hash table, which shows only in the sums and maxima of inactive_split); and a private pool
// with expandable segments lives as long as its blocks (PyTorch 2.11 can destroy it before them, and reads
// freed memory then).
//
// A value: a copy goes on independently from the state at which it was made.
class CachingAllocator final : public DeviceAllocator {
 public:
  explicit CachingAllocator(const CachingAllocatorOptions& options = {});

  // Nothing: failed_request() says why.
  std::optional<BlockNumber> allocate(std::int64_t bytes, StreamId stream) override;
  void free(BlockNumber block) override;
  // Ignored for the stream that the block was made for.
  void record_stream(BlockNumber block, StreamId stream) override;
  void reset_peaks() override { statistics_.reset_peak(); }
  AllocatorNumbers numbers() const override;

  // Gives all cached memory that is not split back to the device (torch.cuda.empty_cache). With a pool: only
  // that private pool, if nobody uses it any more.
  void empty_cache() override { empty_cache(PoolId{}); }
  void empty_cache(PoolId pool);
  // From now on at most this share (0 to 1) of the device's capacity is reserved
  // (torch.cuda.set_per_process_memory_fraction).
  void set_memory_fraction(double fraction);

  // Uses that were recorded on `stream` until now are over; blocks that waited for them become free at the
  // next request. Only with events_complete_at_once = false.
  void complete_events(StreamId stream);
  // The same of the `uses` that were recorded first, of those that are not over.
  void complete_events(StreamId stream, std::size_t uses);
  // All uses of a freed block that still waits are over, and it becomes free now. False if it does not wait.
  bool finish_waiting(BlockNumber block);
  // Whether the block was freed and still waits for another stream or for the end of a capture.
  bool is_waiting(BlockNumber block) const;

  // Private pools (graph captures, torch.cuda.MemPool). A pool lives while it is used: create_pool and
  // begin_pool add a use, release_pool takes one; without uses its cached memory can go back to the device.
  void create_pool(PoolId pool);
  // Requests on `stream` (or on all) come from the pool until end_pool. While any pool is begun, waiting
  // blocks stay waiting and the cache is not released, as during a graph capture.
  void begin_pool(PoolId pool, std::optional<StreamId> stream = std::nullopt);
  void end_pool(PoolId pool);
  void release_pool(PoolId pool);
  bool has_pool(PoolId pool) const { return private_pools_.contains(pool); }
  std::uint32_t pool_uses(PoolId pool) const;
  // The pool's cached blocks may serve requests of the default pool that would fail otherwise.
  void use_on_out_of_memory(PoolId pool, bool use);
  // The pool gives out whole segments.
  void never_split(PoolId pool);

  const Statistics& statistics() const { return statistics_; }
  void reset_accumulated_statistics() { statistics_.reset_accumulated(); }
  const FailedRequest& failed_request() const { return failed_request_; }
  const AllocConf& conf() const { return options_.conf; }
  const DeviceMemory& device() const { return device_; }

  // Address, size and state of a block that exists.
  const Block& block(BlockNumber id) const { return blocks_[id]; }

  // What happened to segments since the last call, in order.
  std::vector<SegmentEvent> take_segment_events() { return std::exchange(segment_events_, {}); }

  // All segments with their blocks, by address. Of an expandable segment each mapped range is one.
  std::vector<SegmentSnapshot> snapshot() const;

  // The first rule that the internal state breaks, or an empty text. Visits all blocks; for tests.
  std::string broken_invariant() const;

 private:
  struct BlockPool {
    bool small = false;
    std::optional<PoolId> owner;  // private pool
    FreeBlocks free;
    std::map<std::pair<StreamId, std::uint64_t>, BlockNumber> unmapped;  // by stream and address
    std::uint64_t lookups = 0;  // counted while garbage collection is on
  };
  struct PrivatePool {
    PoolIndex small = 0;
    PoolIndex large = 0;
    std::uint32_t uses = 1;
    std::int64_t segments = 0;  // pieces of device memory not yet given back
    bool never_split = false;
  };
  struct ExpandableSegment {
    std::uint64_t address = 0;
    std::uint64_t size = 0;  // addresses, not memory
    std::uint64_t page = 0;
    bool exists = false;
  };
  struct Capture {
    PoolId pool;
    std::optional<StreamId> stream;
  };
  struct Request {
    std::uint64_t size = 0;     // of the block
    std::uint64_t segment = 0;  // what would be asked of the device
    StreamId stream = 0;
    PoolIndex pool = 0;
    bool expandable = false;
    BlockNumber block = kNoBlock;                     // found
    std::optional<FreeBlocks::Position> listed = {};  // where it still stands among the free ones of the pool
  };
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
  };
  // An entry of a list of free blocks whose block has become a part of another one.
  struct Absorbed {
    std::uint64_t size = 0;  // 0: there is none
    std::uint64_t place = 0;
  };

  // caching_allocator.cpp: the way of a request and of a free
  void note_failure(const Request& request);
  bool find_free_block(Request& request);
  bool find_any_block(Request& request);
  bool should_split(const Request& request) const;
  BlockNumber hand_out(const Request& request, std::uint64_t bytes);
  BlockNumber split_front(const Request& request);
  void free_block(BlockNumber block);
  std::uint64_t merge(BlockNumber into, BlockNumber other, Absorbed& absorbed);
  void insert_free(BlockNumber block) { insert_free(block, Absorbed()); }
  void insert_free(BlockNumber block, Absorbed absorbed);
  void erase_free(BlockNumber block);
  BlockNumber make_block(StreamId stream, PoolIndex pool, Range range, std::uint64_t place);
  std::uint64_t place_of_segment(Range range);
  std::uint64_t place_within(const Block& block, std::uint64_t address);
  void move_begin(Block& block, std::uint64_t address) const;
  void link_between(BlockNumber block, BlockNumber before, BlockNumber after);
  FreeBlocks::Position best_expandable(const FreeBlocks& free, FreeBlocks::Position best) const;

  // segments.cpp: memory of the device
  bool allocate_segment(Request& request, bool retry);
  bool allocate_ordinary_segment(Request& request);
  bool release_oversize(const Request& request);
  bool release_cache(PoolId pool);
  void release_free_blocks(PoolIndex pool);
  void release_segment(BlockNumber block);
  void collect_garbage();
  bool garbage_collection() const;
  bool may_reserve(std::uint64_t bytes) const;
  void reserve(PoolIndex pool, std::uint64_t bytes);
  void unreserve(PoolIndex pool, std::uint64_t bytes);
  void note_segment(SegmentEvent::Kind kind, const Block& block, Range range);

  // expandable_segments.cpp
  bool allocate_expandable(Request& request);
  BlockNumber find_expandable(const Request& request);
  bool has_room(BlockNumber first, std::uint64_t size) const;
  BlockNumber make_expandable_segment(const Request& request);
  bool map_block(BlockNumber block, std::uint64_t size);
  void unmap_block(BlockNumber block);
  void release_expandable(BlockNumber block);

  // cross_stream.cpp: blocks used on other streams
  void process_events();
  void synchronize_events(std::optional<PoolId> pool);
  void insert_events(BlockNumber block);
  void insert_deferred_events();
  void finish_event(BlockNumber block);

  // private_pools.cpp
  PoolIndex pool_for(std::uint64_t size, StreamId stream) const;
  PoolIndex make_pool(bool small, std::optional<PoolId> owner);
  PrivatePool& private_pool(PoolId pool, const char* what);
  PrivatePool* owner_of(PoolIndex pool);
  const PrivatePool* owner_of(PoolIndex pool) const;
  bool take_from_fallback_pool(Request& request);
  std::uint64_t free_bytes_in_private_pools() const;

  CachingAllocatorOptions options_;
  DeviceMemory device_;
  Statistics statistics_;
  FailedRequest failed_request_;
  BlockTable blocks_;
  std::vector<BlockPool> pools_;  // 0: default small, 1: default large, then the private ones
  std::map<PoolId, PrivatePool> private_pools_;
  std::vector<PoolIndex> unused_pools_;
  std::vector<PoolId> fallback_pools_;  // that may serve the default pool, in the order of registration
  std::uint32_t fallback_slots_ =
      0;  // of the framework's table of them; a power of two, at least twice as many
  std::vector<Capture> captures_;
  std::vector<ExpandableSegment> expandable_;
  std::uint64_t next_place_ = 0;          // of a segment, or the number of the next record
  std::uint64_t reserved_ = 0;            // bytes of the device
  std::optional<std::uint64_t> allowed_;  // set iff the memory fraction is below 1
  std::vector<SegmentEvent> segment_events_;

  // Streams recorded for a block that is not freed yet; and those of them recorded during a capture.
  std::unordered_map<BlockNumber, std::vector<StreamId>> stream_uses_;
  std::unordered_map<BlockNumber, std::vector<StreamId>> capture_stream_uses_;
  std::vector<BlockNumber> deferred_;  // freed during a capture, events to be inserted after it
  struct StreamEvents {
    std::deque<BlockNumber> waiting;  // in the order of recording
    std::size_t complete = 0;         // that many at the front are over
  };
  std::map<StreamId, StreamEvents> events_;
};

}  // namespace metaprof
