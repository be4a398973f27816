#include <algorithm>
#include <cassert>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/size_classes.h"

// Expandable segments: a range of addresses as large as the device, into which pages of memory are mapped as
// they are needed. What has no memory behind it is a block, too, unmapped and in no free list.

namespace metaprof {

bool CachingAllocator::allocate_expandable(Request& request) {
  BlockNumber candidate = find_expandable(request);
  // Either unmapped; or free, and unmapped and free ones follow until the room suffices.
  if (!blocks_[candidate].mapped && !map_block(candidate, std::min(blocks_[candidate].size, request.size))) {
    return false;
  }
  while (blocks_[candidate].size < request.size) {
    const std::uint64_t missing = request.size - blocks_[candidate].size;
    const BlockNumber next = blocks_[candidate].next;
    if (!map_block(next, std::min(missing, blocks_[next].size))) return false;
    candidate = next;  // has taken in the candidate before it
  }
  erase_free(candidate);
  request.block = candidate;
  return true;
}

// The lowest address at which free and unmapped blocks leave enough room; a new segment if there is none.
BlockNumber CachingAllocator::find_expandable(const Request& request) {
  const auto& unmapped = pools_[request.pool].unmapped;
  for (auto it = unmapped.lower_bound({request.stream, 0});
       it != unmapped.end() && it->first.first == request.stream; ++it) {
    BlockNumber first = it->second;
    const BlockNumber before = blocks_[first].previous;
    if (before != kNoBlock && blocks_[before].is_available()) first = before;
    if (has_room(first, request.size)) return first;
  }
  return make_expandable_segment(request);
}

bool CachingAllocator::has_room(BlockNumber first, std::uint64_t size) const {
  std::uint64_t room = 0;
  for (BlockNumber id = first; room < size && id != kNoBlock && blocks_[id].is_available();
       id = blocks_[id].next) {
    room += blocks_[id].size;
  }
  return room >= size;
}

// 9/8 of the device, so that pages at the end can be mapped while some at the beginning were unmapped.
BlockNumber CachingAllocator::make_expandable_segment(const Request& request) {
  const std::uint64_t page = pools_[request.pool].small ? kSmallSegment : options_.conf.large_segment_size;
  const std::uint64_t room = device_.capacity() + device_.capacity() / 8;
  const ExpandableSegment segment{.address = 0, .size = round_up(room, page), .page = page, .exists = true};
  const auto unused =
      std::find_if(expandable_.begin(), expandable_.end(), [](const auto& s) { return !s.exists; });
  const auto index = static_cast<ExpandableIndex>(unused - expandable_.begin());
  if (unused == expandable_.end()) {
    expandable_.push_back(segment);
  } else {
    *unused = segment;
  }
  expandable_[index].address = device_.reserve_addresses(segment.size);
  if (PrivatePool* owner = owner_of(request.pool)) ++owner->segments;

  const Range range{expandable_[index].address, segment.size};
  const BlockNumber id = make_block(request.stream, request.pool, range, place_of_segment(range));
  blocks_[id].mapped = false;
  blocks_[id].expandable = index;
  pools_[request.pool].unmapped[{request.stream, expandable_[index].address}] = id;
  return id;
}

// Maps whole pages for at least the first `size` bytes of an unmapped block, which becomes a free one
// together with its free neighbours. False if the device is full.
bool CachingAllocator::map_block(BlockNumber id, std::uint64_t size) {
  const std::uint64_t page = expandable_[blocks_[id].expandable].page;
  const Range mapped{blocks_[id].address, round_up(size, page)};
  if (!device_.map(mapped.address, mapped.size, page)) return false;

  const PoolIndex pool = blocks_[id].pool;
  pools_[pool].unmapped.erase({blocks_[id].stream, blocks_[id].address});
  blocks_[id].mapped = true;
  if (mapped.size < blocks_[id].size) {
    const std::uint64_t rest_address = mapped.address + mapped.size;
    const BlockNumber rest =
        make_block(blocks_[id].stream, pool, {rest_address, blocks_[id].size - mapped.size},
                   place_within(blocks_[id], rest_address));
    blocks_[rest].mapped = false;
    blocks_[rest].expandable = blocks_[id].expandable;
    link_between(rest, id, blocks_[id].next);
    pools_[pool].unmapped[{blocks_[rest].stream, rest_address}] = rest;
    blocks_[id].size = mapped.size;
  }
  Absorbed absorbed;
  merge(id, blocks_[id].previous, absorbed);
  merge(id, blocks_[id].next, absorbed);
  insert_free(id, absorbed);
  reserve(pool, mapped.size);
  note_segment(SegmentEvent::Kind::map, blocks_[id], mapped);
  return true;
}

// Gives back the whole pages of a free block; what lies on pages in part stays as free blocks before and
// after.
void CachingAllocator::unmap_block(BlockNumber id) {
  const ExpandableSegment& segment = expandable_[blocks_[id].expandable];
  const std::uint64_t begin = blocks_[id].address - segment.address;
  const std::uint64_t end = begin + blocks_[id].size;
  const std::uint64_t first_page = round_up(begin, segment.page);
  const std::uint64_t last_page = end / segment.page * segment.page;
  if (first_page >= last_page) return;
  const Range unmapped{segment.address + first_page, last_page - first_page};

  erase_free(id);
  const auto keep = [&](std::uint64_t address, std::uint64_t size) {
    const BlockNumber part =
        make_block(blocks_[id].stream, blocks_[id].pool, {address, size}, place_within(blocks_[id], address));
    blocks_[part].expandable = blocks_[id].expandable;
    return part;
  };
  if (begin < first_page) {
    const BlockNumber before = keep(blocks_[id].address, first_page - begin);
    link_between(before, blocks_[id].previous, id);
    insert_free(before);
  }
  if (last_page < end) {
    const BlockNumber after = keep(unmapped.address + unmapped.size, end - last_page);
    link_between(after, id, blocks_[id].next);
    insert_free(after);
  }
  move_begin(blocks_[id], unmapped.address);
  blocks_[id].size = unmapped.size;
  blocks_[id].mapped = false;
  Absorbed none;  // neighbours without memory behind them are in no list of free blocks
  merge(id, blocks_[id].previous, none);
  merge(id, blocks_[id].next, none);
  pools_[blocks_[id].pool].unmapped[{blocks_[id].stream, blocks_[id].address}] = id;

  device_.unmap(unmapped.address, unmapped.size, segment.page);
  unreserve(blocks_[id].pool, unmapped.size);
  note_segment(SegmentEvent::Kind::unmap, blocks_[id], unmapped);
}

// Nothing of the segment is mapped any more: its addresses go, too.
void CachingAllocator::release_expandable(BlockNumber id) {
  const Block block = blocks_[id];
  assert(!block.mapped && block.size == expandable_[block.expandable].size);
  expandable_[block.expandable].exists = false;
  device_.release_addresses(block.address, block.size);
  if (PrivatePool* owner = owner_of(block.pool)) --owner->segments;
  pools_[block.pool].unmapped.erase({block.stream, block.address});
  blocks_.remove(id);
}

}  // namespace metaprof
