// Blocks that other streams use: record_stream and what follows from it.

#include <gtest/gtest.h>

#include "meta/allocator/caching_allocator.h"

namespace metaprof {
namespace {

constexpr std::int64_t MiB = 1 << 20;

CachingAllocator with_events() { return CachingAllocator({.events_complete_at_once = false}); }

TEST(CrossStream, AFreedBlockStaysActiveUntilTheUseIsOver) {
  CachingAllocator a = with_events();
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.free(block);
  const Statistics& s = a.statistics();
  EXPECT_TRUE(a.is_waiting(block));
  EXPECT_EQ(s.allocated_bytes.all.current, 0u);
  EXPECT_EQ(s.active_bytes.all.current, 20u * MiB);
  EXPECT_EQ(s.requested_bytes.all.current, 20u * MiB);
  const BlockNumber other = *a.allocate(20 * MiB, 0);  // not this one
  EXPECT_EQ(s.reserved_bytes.all.current, 40u * MiB);

  a.complete_events(1);
  EXPECT_TRUE(a.is_waiting(block));  // noticed at the next request
  a.allocate(512, 0);
  EXPECT_FALSE(a.is_waiting(block));
  EXPECT_EQ(s.active_bytes.all.current, 20u * MiB + 512);
  a.allocate(20 * MiB, 0);
  EXPECT_EQ(s.reserved_bytes.all.current, 42u * MiB);
  a.free(other);
}

TEST(CrossStream, AllStreamsMustBeDone) {
  CachingAllocator a = with_events();
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.record_stream(block, 2);
  a.record_stream(block, 2);
  a.free(block);
  a.complete_events(1);
  a.allocate(512, 0);
  EXPECT_TRUE(a.is_waiting(block));
  a.complete_events(2);
  a.allocate(512, 0);
  EXPECT_FALSE(a.is_waiting(block));
}

TEST(CrossStream, OnlyUsesThatWereRecordedBeforeAreOver) {
  CachingAllocator a = with_events();
  const BlockNumber first = *a.allocate(20 * MiB, 0);
  const BlockNumber second = *a.allocate(30 * MiB, 0);
  for (const BlockNumber block : {first, second}) a.record_stream(block, 1);
  a.free(first);
  a.complete_events(1);
  a.free(second);
  a.allocate(512, 0);
  EXPECT_FALSE(a.is_waiting(first));
  EXPECT_TRUE(a.is_waiting(second));
}

TEST(CrossStream, TheBlocksOwnStreamNeedsNoWaiting) {
  CachingAllocator a = with_events();
  const BlockNumber block = *a.allocate(20 * MiB, 3);
  a.record_stream(block, 3);
  a.free(block);
  EXPECT_FALSE(a.is_waiting(block));
  EXPECT_EQ(a.statistics().active_bytes.all.current, 0u);
}

TEST(CrossStream, WithoutEventsOfItsOwnADeviceIsDoneByTheNextRequest) {
  CachingAllocator a;
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.free(block);
  EXPECT_TRUE(a.is_waiting(block));
  a.allocate(20 * MiB, 0);
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 20u * MiB);
}

TEST(CrossStream, ABlockCanBeTakenOutOfTheQueue) {
  CachingAllocator a = with_events();
  const BlockNumber first = *a.allocate(20 * MiB, 0);
  const BlockNumber second = *a.allocate(30 * MiB, 0);
  for (const BlockNumber block : {first, second}) {
    a.record_stream(block, 1);
    a.free(block);
  }
  EXPECT_TRUE(a.finish_waiting(second));
  EXPECT_FALSE(a.finish_waiting(second));
  EXPECT_EQ(a.statistics().active_bytes.all.current, 20u * MiB);
  a.complete_events(1);
  a.allocate(512, 0);
  EXPECT_EQ(a.statistics().active_bytes.all.current, 512u);
  EXPECT_EQ(a.broken_invariant(), "");
}

TEST(CrossStream, WaitingBlocksAreNotMerged) {
  CachingAllocator a = with_events();
  const BlockNumber first = *a.allocate(4 * MiB, 0);
  const BlockNumber second = *a.allocate(4 * MiB, 0);
  a.record_stream(first, 1);
  a.free(first);
  a.free(second);  // joins what is behind it, not the waiting one before it
  EXPECT_EQ(a.snapshot()[0].blocks.size(), 2u);
  a.finish_waiting(first);
  EXPECT_EQ(a.snapshot()[0].blocks.size(), 1u);
}

TEST(CrossStream, ReleasingTheCacheWaitsForAllUses) {
  CachingAllocator a = with_events();
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.free(block);
  a.empty_cache();
  EXPECT_EQ(a.statistics().num_sync_all_streams, 1u);
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 0u);
}

TEST(CrossStream, AFullDeviceWaitsBeforeTheRetry) {
  CachingAllocator a({.device = {.capacity = 50 * kMiB}, .events_complete_at_once = false});
  const BlockNumber block = *a.allocate(30 * MiB, 0);
  a.record_stream(block, 1);
  a.free(block);
  EXPECT_TRUE(a.allocate(30 * MiB, 0).has_value());
  EXPECT_EQ(a.statistics().num_alloc_retries, 1u);
  EXPECT_EQ(a.statistics().reserved_bytes.all.current, 30u * MiB);
}

}  // namespace
}  // namespace metaprof
