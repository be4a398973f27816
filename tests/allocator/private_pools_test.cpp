// Pools of graph captures and of torch.cuda.MemPool.

#include <gtest/gtest.h>

#include "meta/allocator/caching_allocator.h"
#include "tests/allocator/expect_error.h"

namespace metaprof {
namespace {

constexpr std::int64_t MiB = 1 << 20;
constexpr PoolId pool{0, 1};

std::uint64_t reserved(const CachingAllocator& a) { return a.statistics().reserved_bytes.all.current / kMiB; }

TEST(PrivatePools, HaveSegmentsOfTheirOwn) {
  CachingAllocator a;
  a.free(*a.allocate(20 * MiB, 0));
  a.begin_pool(pool);
  const BlockNumber inside = *a.allocate(20 * MiB, 0);
  a.end_pool(pool);
  EXPECT_EQ(reserved(a), 40u);
  a.free(inside);
  a.allocate(20 * MiB, 0);  // the default pool's, not the private one's
  EXPECT_EQ(reserved(a), 40u);
  a.allocate(20 * MiB, 0);
  EXPECT_EQ(reserved(a), 60u);
  a.begin_pool(pool);
  a.allocate(20 * MiB, 0);
  EXPECT_EQ(reserved(a), 60u);
}

TEST(PrivatePools, OnlyTheNamedStreamIsDiverted) {
  CachingAllocator a;
  a.begin_pool(pool, 1);
  a.allocate(20 * MiB, 0);
  a.allocate(20 * MiB, 1);
  const std::vector<SegmentSnapshot> segments = a.snapshot();
  EXPECT_EQ(segments[1].pool, PoolId{});
  EXPECT_EQ(segments[0].pool, pool);
}

TEST(PrivatePools, TheInnermostPoolCounts) {
  CachingAllocator a;
  const PoolId inner{0, 2};
  a.begin_pool(pool);
  a.begin_pool(inner);
  a.allocate(20 * MiB, 0);
  a.end_pool(inner);
  a.allocate(22 * MiB, 0);
  a.end_pool(pool);
  EXPECT_EQ(a.snapshot()[1].pool, inner);
  EXPECT_EQ(a.snapshot()[0].pool, pool);
}

TEST(PrivatePools, MemoryGoesBackOnlyWhenNobodyUsesThePool) {
  CachingAllocator a;
  a.begin_pool(pool);
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.end_pool(pool);
  a.free(block);
  a.empty_cache();
  EXPECT_EQ(reserved(a), 20u);
  EXPECT_EQ(a.pool_uses(pool), 1u);
  a.release_pool(pool);
  EXPECT_EQ(reserved(a), 20u);
  a.empty_cache();
  EXPECT_EQ(reserved(a), 0u);
  EXPECT_FALSE(a.has_pool(pool));
}

TEST(PrivatePools, AReleasedPoolLivesAsLongAsItsBlocks) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    CachingAllocator a({.conf = parse_alloc_conf(conf)});
    a.begin_pool(pool);
    a.free(*a.allocate(55 * MiB, 0));
    const BlockNumber block = *a.allocate(2 * MiB, 0);
    a.end_pool(pool);
    a.release_pool(pool);
    a.empty_cache();
    EXPECT_TRUE(a.has_pool(pool));
    EXPECT_EQ(a.broken_invariant(), "");
    a.free(block);
    a.empty_cache(pool);
    EXPECT_FALSE(a.has_pool(pool));
    EXPECT_EQ(reserved(a), 0u);
  }
}

TEST(PrivatePools, EmptyCacheOfOnePoolLeavesTheOthers) {
  CachingAllocator a;
  a.free(*a.allocate(30 * MiB, 0));
  a.begin_pool(pool);
  a.free(*a.allocate(20 * MiB, 0));
  a.end_pool(pool);
  a.release_pool(pool);
  a.empty_cache(pool);
  EXPECT_EQ(reserved(a), 30u);
}

TEST(PrivatePools, DuringACaptureTheCacheIsNotReleased) {
  CachingAllocator a({.device = {.capacity = 50 * kMiB}});
  a.free(*a.allocate(40 * MiB, 0));
  a.begin_pool(pool);
  a.empty_cache();
  EXPECT_FALSE(a.allocate(20 * MiB, 0).has_value());
  EXPECT_EQ(a.statistics().num_alloc_retries, 0u);
  a.end_pool(pool);
  EXPECT_TRUE(a.allocate(42 * MiB, 0).has_value());
  EXPECT_EQ(a.statistics().num_alloc_retries, 1u);
}

TEST(PrivatePools, FreesWithOtherStreamsWaitForTheEndOfTheCapture) {
  CachingAllocator a;
  a.begin_pool(pool);
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.free(block);
  a.allocate(20 * MiB, 0);  // not the waiting one
  EXPECT_EQ(reserved(a), 40u);
  EXPECT_TRUE(a.is_waiting(block));
  a.end_pool(pool);
  a.allocate(512, 0);  // the use was recorded within the capture and is over with it
  EXPECT_FALSE(a.is_waiting(block));
}

TEST(PrivatePools, UsesFromBeforeTheCaptureOutliveIt) {
  CachingAllocator a({.events_complete_at_once = false});
  const BlockNumber block = *a.allocate(20 * MiB, 0);
  a.record_stream(block, 1);
  a.begin_pool(pool);
  a.record_stream(block, 2);
  a.free(block);
  a.end_pool(pool);
  a.allocate(512, 0);  // inserts the event of stream 1 only
  EXPECT_TRUE(a.is_waiting(block));
  a.complete_events(1);
  a.allocate(512, 0);
  EXPECT_FALSE(a.is_waiting(block));
}

TEST(PrivatePools, ServeTheDefaultPoolInNeedIfTheyMay) {
  CachingAllocator a({.device = {.capacity = 100 * kMiB}});
  a.create_pool(pool);
  a.begin_pool(pool);
  a.free(*a.allocate(60 * MiB, 0));
  a.end_pool(pool);
  a.release_pool(pool);
  EXPECT_FALSE(a.allocate(50 * MiB, 0).has_value());
  EXPECT_NE(a.failed_request().message().find(
                "Of the allocated memory 60.00 MiB is allocated by PyTorch, with 60.00 MiB allocated in "
                "private pools "
                "(e.g., CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated."),
            std::string::npos);
  a.use_on_out_of_memory(pool, true);
  const BlockNumber block = *a.allocate(50 * MiB, 0);
  EXPECT_EQ(a.block(block).size, 50u * kMiB);  // split: 10 MiB remain in the pool
  EXPECT_EQ(reserved(a), 60u);
  EXPECT_EQ(a.statistics().num_alloc_retries, 1u);  // of the request that failed
}

// As PyTorch 2.11 answers with pools 0.6 to 0.10: the order of a hash table.
TEST(PrivatePools, AreAskedInTheFrameworksOrder) {
  CachingAllocator a({.device = {.capacity = 100 * kMiB}});
  std::map<std::uint64_t, std::uint64_t> pool_at;  // by address
  for (std::uint64_t i = 6; i <= 10; ++i) {
    a.create_pool({0, i});
    a.use_on_out_of_memory({0, i}, true);
    a.begin_pool({0, i});
    const BlockNumber block = *a.allocate(20 * MiB, 0);
    pool_at[a.block(block).address] = i;
    a.end_pool({0, i});
    a.release_pool({0, i});
    a.free(block);
  }
  for (const std::uint64_t expected : {10, 7, 9, 6, 8}) {
    EXPECT_EQ(pool_at[a.block(*a.allocate(20 * MiB, 0)).address], expected);
  }
}

TEST(PrivatePools, CanGiveOutWholeSegments) {
  CachingAllocator a;
  a.create_pool(pool);
  a.never_split(pool);
  a.begin_pool(pool);
  EXPECT_EQ(a.block(*a.allocate(1000, 0)).size, 2 * kMiB);
  EXPECT_EQ(a.block(*a.allocate(3 * MiB, 0)).size, 20 * kMiB);
}

TEST(PrivatePools, SayWhatIsWrong) {
  CachingAllocator a;
  EXPECT_EQ(error_of([&] { a.create_pool({}); }),
            "create_pool: 0.0 is the default memory pool, which always exists");
  EXPECT_EQ(error_of([&] { a.end_pool(pool); }), "end_pool: memory pool 0.1 was not begun");
  EXPECT_EQ(error_of([&] { a.release_pool(pool); }), "release_pool: there is no memory pool 0.1");
  EXPECT_EQ(error_of([&] { a.use_on_out_of_memory(pool, true); }),
            "use_on_out_of_memory: there is no memory pool 0.1");
  EXPECT_EQ(error_of([&] { a.never_split(pool); }), "never_split: there is no memory pool 0.1");
  a.begin_pool(pool);
  EXPECT_EQ(error_of([&] { a.begin_pool(pool); }), "begin_pool: memory pool 0.1 was already begun");
  a.allocate(1000, 0);
  a.end_pool(pool);
  a.release_pool(pool);
  EXPECT_EQ(error_of([&] { a.release_pool(pool); }), "release_pool: memory pool 0.1 is in no use");
  EXPECT_EQ(error_of([&] { a.begin_pool(pool); }),
            "create_pool: memory pool 0.1 was released and cannot be used again");
}

}  // namespace
}  // namespace metaprof
