#include "meta/allocator/caching_allocator.h"

#include <cassert>

#include "core/error.h"
#include "meta/allocator/size_classes.h"

namespace metaprof {

namespace {

// Larger requests are refused before anything else happens (PyTorch 2.11).
constexpr std::uint64_t kLargestRequest = std::uint64_t{1} << 60;

}  // namespace

CachingAllocator::CachingAllocator(const CachingAllocatorOptions& options)
    : options_(options), device_(options.device) {
  make_pool(/*small=*/true, std::nullopt);
  make_pool(/*small=*/false, std::nullopt);
  statistics_.max_split_size = options.conf.max_split_size;
  set_memory_fraction(options.conf.per_process_memory_fraction);
}

void CachingAllocator::set_memory_fraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) fail("memory fraction must be between 0 and 1; got {}", fraction);
  allowed_.reset();
  if (fraction < 1) allowed_ = static_cast<std::uint64_t>(fraction * static_cast<double>(device_.capacity()));
}

AllocatorNumbers CachingAllocator::numbers() const {
  const auto number = [](const PooledStatistic& statistic) {
    return AllocatorNumber{.current = static_cast<std::int64_t>(statistic.all.current),
                           .peak = static_cast<std::int64_t>(statistic.all.peak)};
  };
  return {.allocated_bytes = number(statistics_.allocated_bytes),
          .requested_bytes = number(statistics_.requested_bytes),
          .active_bytes = number(statistics_.active_bytes),
          .reserved_bytes = number(statistics_.reserved_bytes),
          .inactive_split_bytes = number(statistics_.inactive_split_bytes),
          .allocation = number(statistics_.allocation),
          .segment = number(statistics_.segment)};
}

// ---- requests

std::optional<BlockNumber> CachingAllocator::allocate(std::int64_t bytes, StreamId stream) {
  assert(bytes > 0);
  const auto requested = static_cast<std::uint64_t>(bytes);
  if (requested >= kLargestRequest) {
    failed_request_ = {.requested = requested, .above_limit = true};
    return std::nullopt;
  }
  if (captures_.empty()) process_events();
  const std::uint64_t size = round_size(requested, options_.conf);
  Request request{.size = size,
                  .segment = segment_size(size, options_.conf),
                  .stream = stream,
                  .pool = pool_for(size, stream),
                  .expandable = options_.conf.expandable_segments};
  if (!find_free_block(request) && !find_any_block(request)) {
    note_failure(request);
    return std::nullopt;
  }
  return hand_out(request, requested);
}

// No cached block fits. The order of the attempts is the framework's.
bool CachingAllocator::find_any_block(Request& request) {
  if (garbage_collection()) collect_garbage();
  if (allocate_segment(request, /*retry=*/false)) return true;
  if (take_from_fallback_pool(request)) return true;
  if (release_oversize(request) && allocate_segment(request, /*retry=*/false)) return true;
  return captures_.empty() && release_cache(PoolId{}) && allocate_segment(request, /*retry=*/true);
}

void CachingAllocator::note_failure(const Request& request) {
  ++statistics_.num_ooms;
  failed_request_ = {.requested = request.size,
                     .segment = request.segment,
                     .capacity = device_.capacity(),
                     .unused = device_.unused(),
                     .allowed = allowed_,
                     .allocated = statistics_.allocated_bytes.all.current,
                     .cached_in_private_pools = free_bytes_in_private_pools(),
                     .reserved = statistics_.reserved_bytes.all.current,
                     .device_index = options_.device_index};
}

// Best fit: the smallest free block of the stream that is large enough, of equal ones the first by
// FreeBlockOrder.
bool CachingAllocator::find_free_block(Request& request) {
  BlockPool& pool = pools_[request.pool];
  if (garbage_collection()) ++pool.lookups;
  FreeBlocks::Position at = pool.free.lower_bound(request.stream, request.size);
  const auto ours = [&](FreeBlocks::Position p) {
    return p != pool.free.end() && pool.free.stream(p) == request.stream;
  };
  if (!ours(at)) return false;
  if (blocks_[pool.free.block(at)].is_expandable()) {
    if (request.expandable) {
      at = best_expandable(pool.free, at);
    } else {  // made before expandable segments were switched off
      while (ours(at) && blocks_[pool.free.block(at)].is_expandable()) at = pool.free.next(at);
      if (!ours(at)) return false;
    }
  }
  const std::uint64_t size = pool.free.size(at);
  const std::uint64_t limit = options_.conf.max_split_size;
  if (request.size < limit && size >= limit) return false;
  if (request.size >= limit && size >= request.size + options_.conf.max_non_split_rounding) return false;
  request.block = pool.free.block(at);
  request.listed = at;
  return true;
}

// A block at the edge of the mapped range counts as large as it could grow, so that it is spared while
// another block of the stream fits.
FreeBlocks::Position CachingAllocator::best_expandable(const FreeBlocks& free,
                                                       FreeBlocks::Position best) const {
  const auto could_grow_to = [&](FreeBlocks::Position p) {
    const Block& block = blocks_[free.block(p)];
    const bool at_edge = block.next != kNoBlock && !blocks_[block.next].mapped;
    return block.size + (at_edge ? blocks_[block.next].size : 0);
  };
  const StreamId stream = free.stream(best);
  for (auto p = free.next(best); p != free.end() && free.stream(p) == stream; p = free.next(p)) {
    if (!blocks_[free.block(best)].is_expandable() || could_grow_to(p) >= could_grow_to(best)) break;
    best = p;
  }
  return best;
}

bool CachingAllocator::should_split(const Request& request) const {
  const Block& block = blocks_[request.block];
  const PrivatePool* owner = owner_of(block.pool);
  if (owner != nullptr && owner->never_split) return false;
  const std::uint64_t remaining = block.size - request.size;
  if (pools_[block.pool].small || request.expandable) return remaining >= kMinBlockSize;
  return request.size < options_.conf.max_split_size && remaining > kSmallSize;
}

// The found block, or its front part, becomes the program's.
BlockNumber CachingAllocator::hand_out(const Request& request, std::uint64_t bytes) {
  const bool split = should_split(request);
  const bool was_split = blocks_[request.block].is_split();
  if (!split && request.listed) pools_[request.pool].free.erase(*request.listed);
  const BlockNumber id = split ? split_front(request) : request.block;
  Block& block = blocks_[id];
  block.allocated = true;
  block.requested = bytes;

  const bool small = pools_[block.pool].small;
  // What is free in an expandable segment can always be given back, so it does not count as inactive split.
  if (!block.is_expandable()) {
    if (split && was_split) {
      statistics_.inactive_split_bytes.decrease(small, block.size);
    } else if (split) {
      statistics_.inactive_split_bytes.increase(small, blocks_[block.next].size);
      statistics_.inactive_split.increase(small, 1);
    } else if (was_split) {
      statistics_.inactive_split_bytes.decrease(small, block.size);
      statistics_.inactive_split.decrease(small, 1);
    }
  }
  statistics_.allocation.increase(small, 1);
  statistics_.allocated_bytes.increase(small, block.size);
  statistics_.active.increase(small, 1);
  statistics_.active_bytes.increase(small, block.size);
  statistics_.requested_bytes.increase(small, bytes);
  if (block.size >= options_.conf.max_split_size) statistics_.oversize_allocations.increase(1);
  return id;
}

// Cuts what is asked for off the front of the block that was found; what remains is among the free ones.
BlockNumber CachingAllocator::split_front(const Request& request) {
  const BlockNumber rest = request.block;
  const Range range{blocks_[rest].address, request.size};
  const BlockNumber front =
      make_block(blocks_[rest].stream, blocks_[rest].pool, range, place_within(blocks_[rest], range.address));
  blocks_[front].expandable = blocks_[rest].expandable;
  link_between(front, blocks_[rest].previous, rest);
  move_begin(blocks_[rest], range.address + range.size);
  blocks_[rest].size -= range.size;
  if (!request.listed) {
    insert_free(rest);
    return front;
  }
  BlockPool& pool = pools_[request.pool];
  blocks_[rest].lookups_at_insertion = pool.lookups;
  pool.free.replace(*request.listed, blocks_[rest].size, blocks_[rest].place, rest);
  return front;
}

// ---- frees

void CachingAllocator::free(BlockNumber id) {
  Block& block = blocks_[id];
  assert(block.exists && block.allocated);
  block.allocated = false;
  const bool small = pools_[block.pool].small;
  statistics_.allocation.decrease(small, 1);
  statistics_.allocated_bytes.decrease(small, block.size);
  if (block.size >= options_.conf.max_split_size) statistics_.oversize_allocations.decrease(1);

  if (!block.used_elsewhere) {
    free_block(id);
  } else if (captures_.empty()) {
    insert_events(id);
  } else {
    deferred_.push_back(id);
  }
}

// Nobody uses the block any more: it is merged with its free neighbours and cached.
void CachingAllocator::free_block(BlockNumber id) {
  Block& block = blocks_[id];
  assert(block.is_available());
  const bool small = pools_[block.pool].small;
  statistics_.active.decrease(small, 1);
  statistics_.active_bytes.decrease(small, block.size);
  statistics_.requested_bytes.decrease(small, block.requested);
  block.requested = 0;

  Absorbed absorbed;
  const std::uint64_t before = merge(id, block.previous, absorbed);
  const std::uint64_t after = merge(id, block.next, absorbed);
  insert_free(id, absorbed);
  if (block.is_expandable()) return;

  // The change as a whole, because the maximum counts only what is left at the end.
  const std::int64_t blocks = (block.is_split() ? 1 : 0) - (before > 0 ? 1 : 0) - (after > 0 ? 1 : 0);
  const std::uint64_t added = block.is_split() ? block.size : 0;
  if (blocks > 0) statistics_.inactive_split.increase(small, 1);
  if (blocks < 0) statistics_.inactive_split.decrease(small, static_cast<std::uint64_t>(-blocks));
  if (added > before + after) statistics_.inactive_split_bytes.increase(small, added - before - after);
  if (added < before + after) statistics_.inactive_split_bytes.decrease(small, before + after - added);
}

// Bytes of `other` if it was available and has become part of `into`, else 0. One entry that this leaves in the list of
// free blocks is `absorbed`: the whole takes its place there.
std::uint64_t CachingAllocator::merge(BlockNumber into, BlockNumber other, Absorbed& absorbed) {
  if (other == kNoBlock) return 0;
  Block& block = blocks_[into];
  const Block& neighbour = blocks_[other];
  if (!neighbour.is_available() || neighbour.mapped != block.mapped) return 0;
  if (neighbour.mapped && absorbed.size == 0) {
    absorbed = {.size = neighbour.size, .place = neighbour.place};
  } else if (neighbour.mapped) {
    erase_free(other);
  } else {
    pools_[block.pool].unmapped.erase({neighbour.stream, neighbour.address});
  }
  if (block.previous == other) {
    move_begin(block, neighbour.address);
    block.previous = neighbour.previous;
    if (block.previous != kNoBlock) blocks_[block.previous].next = into;
  } else {
    block.next = neighbour.next;
    if (block.next != kNoBlock) blocks_[block.next].previous = into;
  }
  const std::uint64_t size = neighbour.size;
  block.size += size;
  blocks_.remove(other);
  return size;
}

// ---- blocks and free lists

// Segments lie one behind the other in the order in which they came, wherever the device has put them.
std::uint64_t CachingAllocator::place_of_segment(Range range) {
  switch (options_.order) {
    case FreeBlockOrder::address: return range.address;
    case FreeBlockOrder::block_record: return next_place_++;
    case FreeBlockOrder::segment: return std::exchange(next_place_, next_place_ + range.size);
  }
  return 0;
}

// Of a new block that is cut out of another one.
std::uint64_t CachingAllocator::place_within(const Block& block, std::uint64_t address) {
  if (options_.order == FreeBlockOrder::block_record) return next_place_++;
  return block.place + (address - block.address);
}

void CachingAllocator::move_begin(Block& block, std::uint64_t address) const {
  if (options_.order != FreeBlockOrder::block_record) block.place += address - block.address;
  block.address = address;
}

BlockNumber CachingAllocator::make_block(StreamId stream, PoolIndex pool, Range range, std::uint64_t place) {
  const BlockNumber id = blocks_.make();
  Block& block = blocks_[id];
  block.stream = stream;
  block.pool = pool;
  block.address = range.address;
  block.size = range.size;
  block.place = place;
  return id;
}

void CachingAllocator::link_between(BlockNumber id, BlockNumber before, BlockNumber after) {
  blocks_[id].previous = before;
  blocks_[id].next = after;
  if (before != kNoBlock) blocks_[before].next = id;
  if (after != kNoBlock) blocks_[after].previous = id;
}

void CachingAllocator::insert_free(BlockNumber id, Absorbed absorbed) {
  Block& block = blocks_[id];
  BlockPool& pool = pools_[block.pool];
  block.lookups_at_insertion = pool.lookups;
  if (absorbed.size == 0) return pool.free.insert(block.stream, block.size, block.place, id);
  pool.free.replace(pool.free.at(block.stream, absorbed.size, absorbed.place), block.size, block.place, id);
}

void CachingAllocator::erase_free(BlockNumber id) {
  const Block& block = blocks_[id];
  pools_[block.pool].free.erase(block.stream, block.size, block.place);
}

}  // namespace metaprof
