#include <vector>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/size_classes.h"

// How the caching allocator gets memory from the device and gives it back.

namespace metaprof {

bool CachingAllocator::may_reserve(std::uint64_t bytes) const {
  return !allowed_ || reserved_ + bytes <= *allowed_;
}

void CachingAllocator::reserve(PoolIndex pool, std::uint64_t bytes) {
  reserved_ += bytes;
  statistics_.reserved_bytes.increase(pools_[pool].small, bytes);
  ++statistics_.num_device_alloc;
}

void CachingAllocator::unreserve(PoolIndex pool, std::uint64_t bytes) {
  reserved_ -= bytes;
  statistics_.reserved_bytes.decrease(pools_[pool].small, bytes);
  ++statistics_.num_device_free;
}

void CachingAllocator::note_segment(SegmentEvent::Kind kind, const Block& block, Range range) {
  if (!options_.record_segment_events) return;
  segment_events_.push_back({.kind = kind,
                             .address = range.address,
                             .size = range.size,
                             .stream = block.stream,
                             .pool = pools_[block.pool].owner.value_or(PoolId{})});
}

bool CachingAllocator::allocate_segment(Request& request, bool retry) {
  if (retry) ++statistics_.num_alloc_retries;
  if (!may_reserve(request.segment)) return false;
  return request.expandable ? allocate_expandable(request) : allocate_ordinary_segment(request);
}

bool CachingAllocator::allocate_ordinary_segment(Request& request) {
  const std::optional<std::uint64_t> address = device_.allocate(request.segment);
  if (!address) return false;
  const Range range{*address, request.segment};
  request.block = make_block(request.stream, request.pool, range, place_of_segment(range));
  if (PrivatePool* owner = owner_of(request.pool)) ++owner->segments;
  statistics_.segment.increase(pools_[request.pool].small, 1);
  reserve(request.pool, request.segment);
  if (request.segment >= options_.conf.max_split_size) statistics_.oversize_segments.increase(1);
  note_segment(SegmentEvent::Kind::allocate, blocks_[request.block], range);
  return true;
}

// ---- giving back

void CachingAllocator::release_segment(BlockNumber id) {
  const Block block = blocks_[id];
  note_segment(SegmentEvent::Kind::free, block, {block.address, block.size});
  device_.free(block.address, block.size);
  if (PrivatePool* owner = owner_of(block.pool)) --owner->segments;
  statistics_.segment.decrease(pools_[block.pool].small, 1);
  unreserve(block.pool, block.size);
  if (block.size >= options_.conf.max_split_size) statistics_.oversize_segments.decrease(1);
  erase_free(id);
  blocks_.remove(id);
}

// Everything of the pool that is not split, and whole free pages of expandable segments.
void CachingAllocator::release_free_blocks(PoolIndex pool) {
  std::vector<BlockNumber> to_unmap;
  for (const BlockNumber id : pools_[pool].free.blocks()) {
    if (blocks_[id].is_expandable()) {
      to_unmap.push_back(id);
    } else if (!blocks_[id].is_split()) {
      release_segment(id);
    }
  }
  for (const BlockNumber id : to_unmap) {
    unmap_block(id);
    if (!blocks_[id].is_split()) release_expandable(id);
  }
}

void CachingAllocator::empty_cache(PoolId pool) { release_cache(pool); }

bool CachingAllocator::release_cache(PoolId pool) {
  if (pool.is_default() && captures_.empty()) {
    synchronize_events(std::nullopt);
    release_free_blocks(/*large*/ 1);
    release_free_blocks(/*small*/ 0);
  }
  for (auto it = private_pools_.begin(); it != private_pools_.end();) {
    const bool asked_for = pool.is_default() || pool == it->first;
    if (it->second.uses > 0 || !asked_for) {
      ++it;
      continue;
    }
    if (!pool.is_default() && captures_.empty()) synchronize_events(it->first);
    release_free_blocks(it->second.small);
    release_free_blocks(it->second.large);
    if (it->second.segments > 0) {
      ++it;
      continue;
    }
    unused_pools_.push_back(it->second.small);
    unused_pools_.push_back(it->second.large);
    it = private_pools_.erase(it);
  }
  return true;
}

// With max_split_size: gives back oversize blocks of the request's stream, one that is large enough or else
// from the largest down until they sum up to the request. False if that is not reached.
bool CachingAllocator::release_oversize(const Request& request) {
  const std::uint64_t limit = options_.conf.max_split_size;
  if (limit == kUnlimited) return false;
  const FreeBlocks& free = pools_[request.pool].free;
  const std::uint64_t needed = std::max(request.size, limit);
  const auto releasable = [&](FreeBlocks::Position p) { return !blocks_[free.block(p)].is_expandable(); };

  FreeBlocks::Position at = free.lower_bound(request.stream, needed);
  if (at != free.end() && free.stream(at) == request.stream && releasable(at)) {
    release_segment(free.block(at));
    return true;
  }
  std::vector<BlockNumber> chosen;
  std::uint64_t sum = 0;
  while (sum < needed && at != free.begin()) {
    at = free.previous(at);
    if (free.size(at) < limit || free.stream(at) != request.stream) break;
    if (!releasable(at)) continue;
    sum += free.size(at);
    chosen.push_back(free.block(at));
  }
  for (const BlockNumber id : chosen) release_segment(id);
  return sum >= needed;
}

// ---- garbage collection

bool CachingAllocator::garbage_collection() const {
  return allowed_ && options_.conf.garbage_collection_threshold > 0;
}

// Above the threshold, unsplit blocks of the default large pool that are at least as old as the average go
// back to the device, again and again until enough is reclaimed. Age is the number of look-ups in the pool
// since the block was cached.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::uint64_t>(options_.conf.garbage_collection_threshold * static_cast<double>(*allowed_));
  if (reserved_ <= threshold) return;
  const std::uint64_t target = reserved_ - threshold;
  const BlockPool& pool = pools_[1];
  const auto age = [&](BlockNumber id) { return pool.lookups - blocks_[id].lookups_at_insertion; };

  std::uint64_t total_age = 0;
  std::uint64_t candidates = 0;
  for (const BlockNumber id : pool.free.blocks()) {
    if (blocks_[id].is_split()) continue;
    total_age += age(id);
    ++candidates;
  }
  std::uint64_t reclaimed = 0;
  bool progress = true;
  while (reclaimed < target && progress && candidates > 0) {
    progress = false;
    const double average = static_cast<double>(total_age) / static_cast<double>(candidates);
    for (const BlockNumber id : pool.free.blocks()) {
      const Block& block = blocks_[id];
      if (block.is_split() || block.is_expandable() || static_cast<double>(age(id)) < average) continue;
      progress = true;
      reclaimed += block.size;
      total_age -= age(id);
      --candidates;
      release_segment(id);
    }
  }
}

}  // namespace metaprof
