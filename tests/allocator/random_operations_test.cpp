// A million random requests and frees: the state stays consistent, and nothing is left at the end.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/exact_allocator.h"

namespace metaprof {
namespace {

constexpr int operations_each = 200'000;  // five times this
constexpr std::size_t live_blocks = 300;
constexpr int between_checks = 1000;  // a check visits all blocks

class RandomOperations : public testing::TestWithParam<const char*> {
 protected:
  struct Live {
    BlockNumber block;
    BlockNumber exact;
    std::int64_t bytes;
  };

  void step() {
    const std::uint32_t kind = random_() % 1000;
    const bool wants_more = live_.size() < live_blocks ? kind < 550 : kind < 450;
    if (kind == 999) {
      allocator_.empty_cache();
    } else if (kind >= 990 && !live_.empty()) {
      allocator_.record_stream(live_[random_() % live_.size()].block, static_cast<StreamId>(random_() % 3));
    } else if (kind == 989) {
      capturing_ ? allocator_.end_pool(pool) : allocator_.begin_pool(pool);
      if (capturing_) allocator_.release_pool(pool);
      capturing_ = !capturing_;
    } else if (wants_more || live_.empty()) {
      allocate();
    } else {
      free_one();
    }
  }

  void allocate() {
    const int shift = static_cast<int>(random_() % 18) + 9;  // up to 64 MiB
    const std::int64_t bytes = random_() % (std::int64_t{1} << shift) + 1;
    const auto block = allocator_.allocate(bytes, static_cast<StreamId>(random_() % 2));
    if (!block) {
      ++failures_;
      for (int i = 0; i < 10 && !live_.empty(); ++i) free_one();
      return;
    }
    live_.push_back({*block, *exact_.allocate(bytes, 0), bytes});
    ASSERT_GE(allocator_.block(*block).size, static_cast<std::uint64_t>(bytes));
  }

  void free_one() {
    Live& chosen = live_[random_() % live_.size()];
    allocator_.free(chosen.block);
    exact_.free(chosen.exact);
    chosen = live_.back();
    live_.pop_back();
  }

  void check() {
    ASSERT_EQ(allocator_.broken_invariant(), "");
    const AllocatorNumbers caching = allocator_.numbers(), exact = exact_.numbers();
    ASSERT_GE(caching.allocated_bytes.current, exact.allocated_bytes.current);
    ASSERT_GE(caching.requested_bytes.current, exact.requested_bytes.current);  // and what waits for streams
    ASSERT_GE(caching.reserved_bytes.current, caching.active_bytes.current);
  }

  static constexpr PoolId pool{0, 1};
  std::mt19937 random_{7};
  CachingAllocator allocator_{{.conf = parse_alloc_conf(GetParam()), .device = {.capacity = 2000 * kMiB}}};
  ExactAllocator exact_;
  std::vector<Live> live_;
  bool capturing_ = false;
  int failures_ = 0;
};

TEST_P(RandomOperations, KeepTheStateConsistent) {
  allocator_.create_pool(pool);
  for (int i = 0; i < operations_each; ++i) {
    ASSERT_NO_FATAL_FAILURE(step());
    if (i % between_checks == 0) {
      ASSERT_NO_FATAL_FAILURE(check());
    }
  }
  EXPECT_GT(failures_, 0) << "the device was never full";
  while (!live_.empty()) free_one();
  if (capturing_) {
    allocator_.end_pool(pool);
    allocator_.release_pool(pool);
  }
  allocator_.release_pool(pool);
  allocator_.empty_cache();
  const Statistics& s = allocator_.statistics();
  for (const PooledStatistic* statistic :
       {&s.allocated_bytes, &s.active_bytes, &s.requested_bytes, &s.reserved_bytes, &s.inactive_split_bytes,
        &s.segment, &s.active, &s.inactive_split}) {
    EXPECT_EQ(statistic->all.current, 0u);
    EXPECT_EQ(statistic->all.allocated, statistic->all.freed);
    EXPECT_EQ(statistic->all.allocated, statistic->small_pool.allocated + statistic->large_pool.allocated);
  }
  EXPECT_FALSE(allocator_.has_pool(pool));
  EXPECT_EQ(allocator_.device().used(), 0u);
  EXPECT_EQ(exact_.numbers().allocated_bytes.current, 0);
}

INSTANTIATE_TEST_SUITE_P(Options, RandomOperations,
                         testing::Values("", "expandable_segments:True",
                                         "max_split_size_mb:24,max_non_split_rounding_mb:30",
                                         "garbage_collection_threshold:0.5,per_process_memory_fraction:0.7",
                                         "roundup_power2_divisions:[2:2,>:8],large_segment_size_mb:25"));

}  // namespace
}  // namespace metaprof
