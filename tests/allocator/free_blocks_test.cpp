#include "meta/allocator/free_blocks.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace metaprof {
namespace {

TEST(FreeBlocks, OrderIsStreamSizeAddress) {
  FreeBlocks free;
  free.insert(1, 512, 100, 1);
  free.insert(0, 1024, 300, 2);
  free.insert(0, 1024, 200, 3);
  free.insert(0, 512, 400, 4);
  EXPECT_EQ(free.blocks(), (std::vector<BlockNumber>{4, 3, 2, 1}));
  EXPECT_EQ(free.block(free.lower_bound(0, 513)), 3u);
  EXPECT_EQ(free.stream(free.lower_bound(0, 2048)), 1);  // nothing left of stream 0
  EXPECT_EQ(free.lower_bound(1, 1024), free.end());
  EXPECT_EQ(free.block(free.previous(free.end())), 1u);
}

TEST(FreeBlocks, ARequestBeyondAllSizesFindsNothing) {
  FreeBlocks free;
  free.insert(4096, 512, 100, 1);
  EXPECT_EQ(free.stream(free.lower_bound(0, std::uint64_t{1} << 60)), 4096);
  EXPECT_EQ(free.lower_bound(4096, std::uint64_t{1} << 60), free.end());
}

TEST(FreeBlocks, AgreesWithASetOverManyChanges) {
  using Key = std::tuple<StreamId, std::uint64_t, std::uint64_t>;
  FreeBlocks free;
  std::set<Key> expected;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const Key key{random() % 3, random() % 50 * 512, random() % 40 * 512};
    const auto [stream, size, address] = key;
    if (expected.insert(key).second) {
      free.insert(stream, size, address, static_cast<BlockNumber>(i));
    } else {
      expected.erase(key);
      free.erase(stream, size, address);
    }
    const Key probe{random() % 3, random() % 50 * 512, 0};
    const auto set_at = expected.lower_bound(probe);
    const auto at = free.lower_bound(std::get<0>(probe), std::get<1>(probe));
    ASSERT_EQ(at == free.end(), set_at == expected.end());
    if (set_at != expected.end()) {
      ASSERT_EQ(free.stream(at), std::get<0>(*set_at));
      ASSERT_EQ(free.size(at), std::get<1>(*set_at));
    }
    ASSERT_EQ(free.count(), expected.size());
  }
  auto at = free.begin();
  for (const Key& key : expected) {
    EXPECT_EQ(free.size(at), std::get<1>(key));
    at = free.next(at);
  }
  EXPECT_EQ(at, free.end());
}

TEST(FreeBlocks, WhatIsReplacedStandsWhereItBelongs) {
  using Key = std::tuple<StreamId, std::uint64_t, std::uint64_t>;
  FreeBlocks free;
  std::map<Key, BlockNumber> expected;
  std::mt19937 random(5);
  const auto key = [&] { return Key{random() % 3, random() % 500 * 512, random() % 40 * 512}; };
  for (BlockNumber i = 0; i < 20'000; ++i) {
    const Key next = key();
    const auto [stream, size, place] = next;
    const auto before = expected.lower_bound({stream, random() % 500 * 512, 0});
    if (expected.contains(next)) continue;
    if (i < 400 || before == expected.end() || std::get<0>(before->first) != stream) {
      if (expected.size() < 400) {
        free.insert(stream, size, place, i);
        expected.emplace(next, i);
      }
      continue;
    }
    const auto [same, old_size, old_place] = before->first;
    free.replace(free.at(same, old_size, old_place), size, place, i);
    expected.erase(before);
    expected.emplace(next, i);
    std::vector<BlockNumber> blocks;
    for (const auto& [at, block] : expected) blocks.push_back(block);
    ASSERT_EQ(free.blocks(), blocks);
  }
}

}  // namespace
}  // namespace metaprof
