// The caching allocator on memory that somebody else holds, as a real device does.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "meta/allocator/caching_allocator.h"

namespace metaprof {
namespace {

// Memory of `capacity` bytes. Breaks the test if it gets back what it did not give.
class Source final : public MemorySource {
 public:
  explicit Source(std::uint64_t capacity) : capacity_(capacity) {}

  std::optional<std::uint64_t> allocate(std::uint64_t bytes) override {
    if (bytes > unused()) return std::nullopt;
    segments[next_] = bytes;
    used += bytes;
    return take_addresses(bytes);
  }
  void free(std::uint64_t address, std::uint64_t bytes) override {
    EXPECT_EQ(segments.at(address), bytes);
    segments.erase(address);
    used -= bytes;
  }
  std::uint64_t reserve_addresses(std::uint64_t bytes) override {
    reserved[next_] = bytes;
    return take_addresses(bytes);
  }
  void release_addresses(std::uint64_t address, std::uint64_t bytes) override {
    EXPECT_EQ(reserved.at(address), bytes);
    EXPECT_TRUE(pages.lower_bound(address) == pages.lower_bound(address + bytes)) << "still mapped";
    reserved.erase(address);
  }
  bool map(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) override {
    EXPECT_EQ(bytes % page, 0u);
    if (bytes > unused()) return false;
    for (std::uint64_t at = address; at < address + bytes; at += page)
      EXPECT_TRUE(pages.emplace(at, page).second) << "mapped twice";
    used += bytes;
    return true;
  }
  void unmap(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) override {
    for (std::uint64_t at = address; at < address + bytes; at += page) {
      EXPECT_EQ(pages.at(at), page);
      pages.erase(at);
    }
    used -= bytes;
  }
  std::uint64_t unused() const override { return capacity_ - used; }

  std::map<std::uint64_t, std::uint64_t> segments, reserved, pages;
  std::uint64_t used = 0;

 private:
  std::uint64_t take_addresses(std::uint64_t bytes) { return std::exchange(next_, next_ + bytes); }

  std::uint64_t capacity_, next_ = std::uint64_t{1} << 40;
};

class OnASource : public testing::TestWithParam<const char*> {};

// Random requests, with failures and releases among them: what the allocator counts is what the source has given.
TEST_P(OnASource, TakesAndGivesBackWhatItCounts) {
  const std::uint64_t capacity = 600 * kMiB;
  Source source(capacity);
  CachingAllocator allocator(
      {.conf = parse_alloc_conf(GetParam()), .device = {.capacity = capacity, .source = &source}});
  std::mt19937 random(7);
  std::vector<BlockNumber> blocks;
  int failures = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!blocks.empty() && random() % 5 < 2) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      allocator.free(blocks.back());
      blocks.pop_back();
    } else if (random() % 200 == 0) {
      allocator.empty_cache();
    } else {
      const std::int64_t bytes =
          1 + static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 60 * kMiB : 100'000));
      const auto block = allocator.allocate(bytes, static_cast<StreamId>(random() % 2));
      if (block)
        blocks.push_back(*block);
      else
        ++failures;
    }
    ASSERT_EQ(static_cast<std::uint64_t>(allocator.numbers().reserved_bytes.current), source.used);
    ASSERT_EQ(allocator.broken_invariant(), "");
  }
  EXPECT_GT(failures, 10);
  for (const BlockNumber block : blocks) allocator.free(block);
  allocator.empty_cache();
  EXPECT_EQ(source.used, 0u);
  EXPECT_TRUE(source.segments.empty());
  EXPECT_TRUE(source.reserved.empty());
}

INSTANTIATE_TEST_SUITE_P(Both, OnASource, testing::Values("", "expandable_segments:True"),
                         [](const auto& info) { return info.index == 0 ? "Ordinary" : "Expandable"; });

TEST(OnASource, IsFullWhenTheSourceSaysSo) {
  Source source(100 * kMiB);
  CachingAllocator allocator({.device = {.capacity = 1000 * kMiB, .source = &source}});
  EXPECT_TRUE(allocator.allocate(60 * kMiB, 0));
  EXPECT_FALSE(allocator.allocate(60 * kMiB, 0));
  EXPECT_EQ(allocator.failed_request().unused, 40 * kMiB);
}

}  // namespace
}  // namespace metaprof
