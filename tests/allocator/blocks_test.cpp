// Rounding, splitting, best fit and merging of the caching allocator, and what its statistics say about them.

#include <gtest/gtest.h>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/exact_allocator.h"

namespace metaprof {
namespace {

constexpr std::int64_t MiB = 1 << 20;

const PooledStatistic& allocated(const CachingAllocator& a) { return a.statistics().allocated_bytes; }
const PooledStatistic& reserved(const CachingAllocator& a) { return a.statistics().reserved_bytes; }

TEST(Blocks, ASmallRequestTakesTheFrontOfATwoMebibyteSegment) {
  CachingAllocator a;
  const BlockNumber block = *a.allocate(1000, 0);
  EXPECT_EQ(a.block(block).size, 1024u);
  EXPECT_EQ(allocated(a).all.current, 1024u);
  EXPECT_EQ(allocated(a).small_pool.current, 1024u);
  EXPECT_EQ(allocated(a).large_pool.current, 0u);
  EXPECT_EQ(a.statistics().requested_bytes.all.current, 1000u);
  EXPECT_EQ(reserved(a).small_pool.current, 2u * MiB);
  EXPECT_EQ(a.statistics().segment.all.current, 1u);
  EXPECT_EQ(a.statistics().inactive_split.all.current, 1u);
  EXPECT_EQ(a.statistics().inactive_split_bytes.all.current, 2u * MiB - 1024);
}

struct SplitCase {
  std::int64_t request;
  std::uint64_t segment;
  std::uint64_t block;
};

TEST(Blocks, LargeBlocksAreSplitOnlyIfMoreThanOneMebibyteRemains) {
  const SplitCase cases[] = {
      {MiB, 2 * MiB, MiB},                         // exactly 1 MiB is still small
      {3 * MiB / 2, 20 * MiB, 3 * MiB / 2},        // 1.5 MiB: 18.5 MiB remain
      {21 * MiB / 2, 12 * MiB, 21 * MiB / 2},      // 10.5 MiB: 1.5 MiB remain
      {23 * MiB / 2, 12 * MiB, 12 * MiB},          // 11.5 MiB: 0.5 MiB remain, not split
      {11 * MiB, 12 * MiB, 12 * MiB},              // 11 MiB: exactly 1 MiB remains, not split
      {11 * MiB - 512, 12 * MiB, 11 * MiB - 512},  // 512 bytes more than 1 MiB remain
  };
  for (const SplitCase& c : cases) {
    CachingAllocator a;
    const BlockNumber block = *a.allocate(c.request, 0);
    EXPECT_EQ(reserved(a).all.current, c.segment) << c.request;
    EXPECT_EQ(a.block(block).size, c.block) << c.request;
    EXPECT_EQ(allocated(a).all.current, c.block) << c.request;
    EXPECT_EQ(a.statistics().requested_bytes.all.current, static_cast<std::uint64_t>(c.request));
  }
}

TEST(Blocks, SmallBlocksAreSplitDownTo512Bytes) {
  CachingAllocator a;
  for (int i = 0; i < 4096; ++i) a.allocate(1, 0);  // 4096 * 512 = 2 MiB
  EXPECT_EQ(reserved(a).all.current, 2u * MiB);
  EXPECT_EQ(a.statistics().inactive_split.all.current, 0u);
  a.allocate(1, 0);
  EXPECT_EQ(reserved(a).all.current, 4u * MiB);
}

TEST(Blocks, BestFitIsTheSmallestThatSuffices) {
  CachingAllocator a;
  const BlockNumber large = *a.allocate(40 * MiB, 0);
  const BlockNumber middle = *a.allocate(30 * MiB, 0);
  const BlockNumber small = *a.allocate(20 * MiB, 0);
  const std::uint64_t middle_address = a.block(middle).address;
  a.free(large);
  a.free(middle);
  a.free(small);
  EXPECT_EQ(a.block(*a.allocate(21 * MiB, 0)).address, middle_address);
  EXPECT_EQ(reserved(a).all.current, 90u * MiB);
}

TEST(Blocks, OfEqualBlocksTheLowestAddressIsTaken) {
  // Downwards the second segment is the lower one, upwards the first.
  for (const AddressOrder order : {AddressOrder::downwards, AddressOrder::upwards}) {
    CachingAllocator a({.device = {.order = order}});
    const BlockNumber first = *a.allocate(20 * MiB, 0);
    const BlockNumber second = *a.allocate(20 * MiB, 0);
    const std::uint64_t lowest = std::min(a.block(first).address, a.block(second).address);
    EXPECT_EQ(lowest == a.block(first).address, order == AddressOrder::upwards);
    a.free(first);
    a.free(second);
    EXPECT_EQ(a.block(*a.allocate(20 * MiB, 0)).address, lowest);
  }
}

TEST(Blocks, FreedNeighboursMergeWithinTheirSegment) {
  CachingAllocator a;
  const BlockNumber first = *a.allocate(4 * MiB, 0);
  const BlockNumber second = *a.allocate(4 * MiB, 0);
  const BlockNumber third = *a.allocate(4 * MiB, 0);  // 8 MiB of the 20 remain
  const Statistics& s = a.statistics();
  EXPECT_EQ(s.inactive_split_bytes.all.current, 8u * MiB);
  a.free(first);
  EXPECT_EQ(s.inactive_split.all.current, 2u);
  EXPECT_EQ(s.inactive_split_bytes.all.current, 12u * MiB);
  a.free(third);  // joins the 8 MiB behind it
  EXPECT_EQ(s.inactive_split.all.current, 2u);
  EXPECT_EQ(s.inactive_split_bytes.all.current, 16u * MiB);
  a.free(second);  // all is one block again and no longer split
  EXPECT_EQ(s.inactive_split.all.current, 0u);
  EXPECT_EQ(s.inactive_split_bytes.all.current, 0u);
  EXPECT_EQ(s.inactive_split_bytes.all.peak, 16u * MiB);  // 20 - 4 after the first request
  EXPECT_EQ(a.snapshot().size(), 1u);
  EXPECT_EQ(a.snapshot()[0].blocks.size(), 1u);
}

TEST(Blocks, SegmentsThatTouchAreNotMerged) {
  CachingAllocator a;
  const BlockNumber first = *a.allocate(20 * MiB, 0);
  const BlockNumber second = *a.allocate(20 * MiB, 0);
  ASSERT_EQ(a.block(second).address + 20 * MiB, a.block(first).address);
  a.free(first);
  a.free(second);
  a.allocate(40 * MiB, 0);
  EXPECT_EQ(reserved(a).all.current, 80u * MiB);
}

TEST(Blocks, StreamsDoNotShareFreeBlocks) {
  CachingAllocator a;
  a.free(*a.allocate(20 * MiB, 0));
  a.allocate(20 * MiB, 1);
  EXPECT_EQ(reserved(a).all.current, 40u * MiB);
  a.allocate(20 * MiB, 0);
  EXPECT_EQ(reserved(a).all.current, 40u * MiB);
}

TEST(Blocks, MaxSplitSizeKeepsLargeBlocksWhole) {
  CachingAllocator a({.conf = parse_alloc_conf("max_split_size_mb:32")});
  a.free(*a.allocate(64 * MiB, 0));  // oversize
  EXPECT_EQ(a.statistics().oversize_segments.current, 1u);
  EXPECT_EQ(a.statistics().oversize_allocations.current, 0u);
  EXPECT_EQ(a.statistics().oversize_allocations.peak, 1u);
  a.allocate(20 * MiB, 0);  // below 32 MiB: may not take it
  EXPECT_EQ(reserved(a).all.current, 84u * MiB);
  const BlockNumber oversize = *a.allocate(45 * MiB, 0);  // 64 < 45 + 20: taken as a whole
  EXPECT_EQ(a.block(oversize).size, 64u * MiB);
  a.free(oversize);
  a.allocate(44 * MiB, 0);  // 64 is not below 44 + 20: a segment of its own
  EXPECT_EQ(reserved(a).all.current, 128u * MiB);
}

TEST(Blocks, MaxNonSplitRoundingWidensTheChoice) {
  CachingAllocator a({.conf = parse_alloc_conf("max_split_size_mb:32,max_non_split_rounding_mb:40")});
  a.free(*a.allocate(64 * MiB, 0));
  EXPECT_EQ(a.block(*a.allocate(34 * MiB, 0)).size, 64u * MiB);
}

TEST(Blocks, RoundupDivisionsGiveLargerBlocks) {
  CachingAllocator a({.conf = parse_alloc_conf("roundup_power2_divisions:2")});
  EXPECT_EQ(a.block(*a.allocate(17 * MiB, 0)).size, 24u * MiB);  // 16, 24, 32 MiB
  EXPECT_EQ(a.statistics().requested_bytes.all.current, 17u * MiB);
}

TEST(Blocks, LargeSegmentSizeIsAnOption) {
  CachingAllocator a({.conf = parse_alloc_conf("large_segment_size_mb:25")});
  a.allocate(2 * MiB, 0);
  EXPECT_EQ(reserved(a).all.current, 25u * MiB);
}

TEST(Blocks, PeaksStayUntilTheyAreReset) {
  CachingAllocator a;
  const BlockNumber first = *a.allocate(30 * MiB, 0);
  a.free(*a.allocate(50 * MiB, 0));
  EXPECT_EQ(allocated(a).all.peak, 80u * MiB);
  EXPECT_EQ(a.numbers().allocated_bytes.peak, 80 * MiB);
  a.reset_peaks();
  EXPECT_EQ(allocated(a).all.peak, 30u * MiB);
  EXPECT_EQ(a.numbers().reserved_bytes.peak, 80 * MiB);  // the cached segment counts
  a.free(first);
  EXPECT_EQ(allocated(a).all.peak, 30u * MiB);
}

TEST(Blocks, SumsCountUntilTheyAreReset) {
  CachingAllocator a;
  for (int i = 0; i < 3; ++i) a.free(*a.allocate(700, 0));
  EXPECT_EQ(allocated(a).all.allocated, 3 * 1024u);
  EXPECT_EQ(allocated(a).all.freed, 3 * 1024u);
  EXPECT_EQ(a.statistics().allocation.small_pool.allocated, 3u);
  EXPECT_EQ(a.statistics().num_device_alloc, 1u);
  a.reset_accumulated_statistics();
  EXPECT_EQ(allocated(a).all.allocated, 0u);
  EXPECT_EQ(a.statistics().num_device_alloc, 0u);
  EXPECT_EQ(allocated(a).all.peak, 1024u);
}

TEST(Blocks, StatisticsHaveTheFrameworksNames) {
  CachingAllocator a;
  a.allocate(1000, 0);
  const auto value = [&](const char* name) { return StatisticField::find(name)->of(a.statistics()); };
  EXPECT_EQ(value("allocated_bytes.all.current"), 1024u);
  EXPECT_EQ(value("reserved_bytes.small_pool.peak"), 2u * MiB);
  EXPECT_EQ(value("requested_bytes.large_pool.allocated"), 0u);
  EXPECT_EQ(value("oversize_segments.freed"), 0u);
  EXPECT_EQ(value("num_device_alloc"), 1u);
  EXPECT_EQ(value("max_split_size"), kUnlimited);
  EXPECT_EQ(StatisticField::find("allocated_bytes"), nullptr);
  EXPECT_EQ(StatisticField::all().size(), 9 * 3 * 4 + 2 * 4 + 6u);
}

TEST(Blocks, SnapshotShowsTheBlocksOfEachSegment) {
  CachingAllocator a;
  const BlockNumber small = *a.allocate(1000, 0);
  a.allocate(12 * MiB, 3);
  const std::vector<SegmentSnapshot> segments = a.snapshot();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_TRUE(segments[0].large);  // downwards: the second segment has the lower address
  EXPECT_EQ(segments[0].stream, 3);
  EXPECT_EQ(segments[1].address, a.block(small).address);
  EXPECT_EQ(segments[1].size, 2u * MiB);
  ASSERT_EQ(segments[1].blocks.size(), 2u);
  EXPECT_TRUE(segments[1].blocks[0].allocated);
  EXPECT_EQ(segments[1].blocks[0].requested, 1000u);
  EXPECT_FALSE(segments[1].blocks[1].active);
}

TEST(Blocks, ACopyGoesOnByItself) {
  CachingAllocator a;
  const BlockNumber block = *a.allocate(5000, 0);
  CachingAllocator copy = a;
  copy.free(block);
  copy.allocate(30 * MiB, 0);
  EXPECT_EQ(allocated(a).all.current, 5120u);
  EXPECT_EQ(a.broken_invariant(), "");
  EXPECT_EQ(copy.broken_invariant(), "");
  EXPECT_EQ(a.block(*a.allocate(30 * MiB, 0)).address, copy.snapshot()[0].address);  // the same next segment
}

TEST(ExactAllocator, TakesWhatIsAskedForAndNoMore) {
  ExactAllocator exact;
  const BlockNumber first = *exact.allocate(1000, 0);
  const BlockNumber second = *exact.allocate(11 * MiB, 1);
  exact.free(first);
  EXPECT_EQ(exact.numbers().allocated_bytes.current, 11 * MiB);
  EXPECT_EQ(exact.numbers().reserved_bytes.peak, 11 * MiB + 1000);
  exact.reset_peaks();
  EXPECT_EQ(exact.numbers().requested_bytes.peak, 11 * MiB);
  EXPECT_EQ(exact.numbers().allocation.current, 1);
  exact.free(second);
  EXPECT_EQ(exact.numbers().allocated_bytes.current, 0);
}

}  // namespace
}  // namespace metaprof
