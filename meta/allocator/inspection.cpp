// What the allocator holds, and whether it is consistent.

#include <fmt/format.h>

#include <algorithm>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/size_classes.h"

namespace metaprof {

std::vector<SegmentSnapshot> CachingAllocator::snapshot() const {
  std::vector<SegmentSnapshot> segments;
  for (BlockNumber first = 0; first < blocks_.end(); ++first) {
    const Block& head = blocks_[first];
    const bool begins = head.previous == kNoBlock || !blocks_[head.previous].mapped;
    if (!head.exists || !head.mapped || !begins) continue;
    SegmentSnapshot segment{.address = head.address,
                            .size = 0,
                            .stream = head.stream,
                            .pool = pools_[head.pool].owner.value_or(PoolId{}),
                            .large = !pools_[head.pool].small,
                            .expandable = head.is_expandable(),
                            .blocks = {}};
    for (BlockNumber id = first; id != kNoBlock && blocks_[id].mapped; id = blocks_[id].next) {
      const Block& block = blocks_[id];
      segment.size += block.size;
      segment.blocks.push_back({.address = block.address,
                                .size = block.size,
                                .requested = block.requested,
                                .allocated = block.allocated,
                                .active = !block.is_available()});
    }
    segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

std::string CachingAllocator::broken_invariant() const {
  const auto is = [](const Statistic& s, std::uint64_t sum, const char* name) {
    return s.current == sum ? "" : fmt::format("{} is {}, the blocks sum up to {}", name, s.current, sum);
  };
  std::uint64_t reserved = 0, allocated = 0, active = 0, requested = 0, inactive = 0;
  std::uint64_t allocations = 0, actives = 0, inactives = 0, ordinary = 0, free_listed = 0;
  std::uint64_t end_of_last = 0;
  for (const SegmentSnapshot& segment : snapshot()) {
    if (segment.address < end_of_last)
      return fmt::format("segment at {:x} overlaps the one before", segment.address);
    std::uint64_t expected = segment.address;
    for (std::size_t i = 0; i < segment.blocks.size(); ++i) {
      const BlockSnapshot& block = segment.blocks[i];
      if (block.address != expected) return fmt::format("gap or overlap before block {:x}", block.address);
      if (block.size == 0 || block.size % kMinBlockSize != 0)
        return fmt::format("block {:x} has {} bytes", block.address, block.size);
      if (block.requested > block.size)
        return fmt::format("block {:x} is smaller than its request", block.address);
      if (i > 0 && !block.active && !segment.blocks[i - 1].active) {
        return fmt::format("free neighbours at {:x} are not merged", block.address);
      }
      expected += block.size;
      allocated += block.allocated ? block.size : 0;
      allocations += block.allocated ? 1 : 0;
      active += block.active ? block.size : 0;
      actives += block.active ? 1 : 0;
      requested += block.active ? block.requested : 0;
      free_listed += block.active ? 0 : 1;
      if (!block.active && !segment.expandable && segment.blocks.size() > 1) {
        inactive += block.size;
        ++inactives;
      }
    }
    end_of_last = expected;
    reserved += segment.size;
    ordinary += segment.expandable ? 0 : 1;
  }
  std::uint64_t in_lists = 0;
  for (const BlockPool& pool : pools_) {
    for (const BlockNumber id : pool.free.blocks()) {
      ++in_lists;
      if (!blocks_[id].exists || !blocks_[id].is_available() || !blocks_[id].mapped)
        return "a used block is in a free list";
    }
  }
  if (in_lists != free_listed) return fmt::format("{} free blocks, {} in free lists", free_listed, in_lists);
  if (device_.used() < reserved_ || reserved_ != reserved) return "reserved bytes differ from the device's";
  const Statistics& s = statistics_;
  for (const std::string& text :
       {is(s.reserved_bytes.all, reserved, "reserved_bytes"),
        is(s.allocated_bytes.all, allocated, "allocated_bytes"),
        is(s.active_bytes.all, active, "active_bytes"),
        is(s.requested_bytes.all, requested, "requested_bytes"),
        is(s.inactive_split_bytes.all, inactive, "inactive_split_bytes"),
        is(s.segment.all, ordinary, "segment"), is(s.allocation.all, allocations, "allocation"),
        is(s.active.all, actives, "active"), is(s.inactive_split.all, inactives, "inactive_split")}) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace metaprof
