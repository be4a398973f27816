// Expandable segments: pages that are mapped as they are needed.

#include <gtest/gtest.h>

#include "meta/allocator/caching_allocator.h"

namespace metaprof {
namespace {

constexpr std::int64_t MiB = 1 << 20;

CachingAllocator expandable(std::uint64_t mebibytes, const char* more = "") {
  return CachingAllocator({.conf = parse_alloc_conf(std::string("expandable_segments:True") + more),
                           .device = {.capacity = mebibytes * kMiB},
                           .record_segment_events = true});
}

struct Page {
  SegmentEvent::Kind kind;
  std::uint64_t offset;  // MiB, from the beginning of reserved addresses
  std::uint64_t size;    // MiB
  bool operator==(const Page&) const = default;
};

void PrintTo(const Page& page, std::ostream* out) {
  *out << (page.kind == SegmentEvent::Kind::map ? "map " : "unmap ") << page.offset << " + " << page.size;
}

std::vector<Page> pages(CachingAllocator& a) {
  std::vector<Page> all;
  for (const SegmentEvent& event : a.take_segment_events()) {
    all.push_back(
        {event.kind, (event.address - DeviceMemoryOptions{}.virtual_address) / kMiB, event.size / kMiB});
  }
  return all;
}

constexpr auto map = SegmentEvent::Kind::map;
constexpr auto unmap = SegmentEvent::Kind::unmap;

TEST(Expandable, MapsOnlyTheMissingPages) {
  CachingAllocator a = expandable(1000);
  a.allocate(30 * MiB, 0);  // two pages of 20 MiB
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 40}}));
  a.allocate(15 * MiB, 0);  // 10 are left: one page more
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 40, 20}}));
  const Statistics& s = a.statistics();
  EXPECT_EQ(s.reserved_bytes.all.current, 60u * MiB);
  EXPECT_EQ(s.allocated_bytes.all.current, 45u * MiB);
  EXPECT_EQ(s.segment.all.current, 0u);               // does not count expandable segments
  EXPECT_EQ(s.inactive_split_bytes.all.current, 0u);  // nor their free parts
  EXPECT_EQ(s.num_device_alloc, 2u);
}

TEST(Expandable, SmallBlocksHaveASegmentWithPagesOfTwoMebibytes) {
  CachingAllocator a = expandable(1000);
  a.allocate(1000, 0);
  a.allocate(30 * MiB, 0);
  // The first segment reserves 9/8 of 1000 MiB, up to whole pages of 2 MiB: 1125 -> 1126.
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 2}, {map, 1126, 40}}));
}

TEST(Expandable, EveryStreamHasItsOwnSegment) {
  CachingAllocator a = expandable(1000);
  a.free(*a.allocate(20 * MiB, 0));
  a.allocate(20 * MiB, 1);
  // 1125 MiB up to pages of 20 MiB: 1140.
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 20}, {map, 1140, 20}}));
}

TEST(Expandable, BlocksAreSplitToTheByteRounding) {
  CachingAllocator a = expandable(1000);
  const BlockNumber block = *a.allocate(23 * MiB / 2, 0);  // an ordinary 12 MiB segment would not be split
  EXPECT_EQ(a.block(block).size, 23u * MiB / 2);
  EXPECT_EQ(a.block(*a.allocate(8 * MiB, 0)).size, 8u * MiB);  // 0.5 MiB remain
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 20u * MiB);
}

TEST(Expandable, PageSizeIsTheLargeSegmentSize) {
  CachingAllocator a = expandable(1000, ",large_segment_size_mb:32");
  a.allocate(2 * MiB, 0);
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 32}}));
}

// Blocks of 20, 20 and 60 MiB. Of the two free ones the middle one fits better, and the last one could
// grow to the end of the addresses.
TEST(Expandable, SparesTheBlockThatCanGrow) {
  CachingAllocator a = expandable(1000);
  a.allocate(20 * MiB, 0);
  const BlockNumber middle = *a.allocate(30 * MiB, 0);
  a.allocate(5 * MiB, 0);  // 5 MiB remain at the end of 60
  const std::uint64_t address = a.block(middle).address;
  a.free(middle);
  pages(a);
  EXPECT_EQ(a.block(*a.allocate(4 * MiB, 0)).address, address);  // 5 would fit better than 30
  EXPECT_TRUE(pages(a).empty());
}

TEST(Expandable, UnmapsWholeFreePages) {
  CachingAllocator a = expandable(1000);
  const BlockNumber first = *a.allocate(50 * MiB, 0);
  const BlockNumber last = *a.allocate(10 * MiB, 0);  // 60 mapped
  a.free(first);
  pages(a);
  a.empty_cache();  // of 0 to 50 the pages 0 to 40 are free as a whole
  EXPECT_EQ(pages(a), (std::vector<Page>{{unmap, 0, 40}}));
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 20u * MiB);
  EXPECT_EQ(a.broken_invariant(), "");
  a.allocate(35 * MiB, 0);  // the gap comes before the end
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 40}}));
  a.free(last);
  EXPECT_EQ(a.broken_invariant(), "");
}

TEST(Expandable, ASegmentWithoutPagesGoesAway) {
  CachingAllocator a = expandable(1000);
  a.free(*a.allocate(50 * MiB, 0));
  a.empty_cache();
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 0, 60}, {unmap, 0, 60}}));
  a.allocate(10 * MiB, 0);
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 1140, 20}}));  // in new addresses
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 20u * MiB);
}

TEST(Expandable, AFullDeviceUnmapsAndTriesAgain) {
  CachingAllocator a = expandable(100);
  const BlockNumber first = *a.allocate(60 * MiB, 0);
  a.allocate(20 * MiB, 0);
  a.free(first);
  pages(a);
  // Stream 1 needs 60 of the 20 that are left. The retry unmaps 60 and maps them for stream 1.
  ASSERT_TRUE(a.allocate(60 * MiB, 1).has_value());
  EXPECT_EQ(pages(a), (std::vector<Page>{{unmap, 0, 60}, {map, 120, 60}}));  // 112.5 -> 120
  EXPECT_EQ(a.statistics().num_alloc_retries, 1u);
  EXPECT_FALSE(a.allocate(30 * MiB, 1).has_value());
  EXPECT_EQ(a.statistics().num_ooms, 1u);
  EXPECT_EQ(a.broken_invariant(), "");
}

TEST(Expandable, GrowsAFreeBlockIntoTheUnmappedOneAfterIt) {
  CachingAllocator a = expandable(1000);
  const BlockNumber first = *a.allocate(10 * MiB, 0);
  const BlockNumber second = *a.allocate(10 * MiB, 0);
  a.free(second);
  pages(a);
  const BlockNumber grown = *a.allocate(25 * MiB, 0);  // 10 free + 15 missing -> one page
  EXPECT_EQ(pages(a), (std::vector<Page>{{map, 20, 20}}));
  EXPECT_EQ(a.block(grown).address, a.block(first).address + 10 * kMiB);
}

}  // namespace
}  // namespace metaprof
