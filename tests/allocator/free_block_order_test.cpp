// Which of several free blocks of one size is taken, by version of the framework.

#include "meta/allocator/free_block_order.h"

#include <gtest/gtest.h>

#include "meta/allocator/caching_allocator.h"

namespace metaprof {
namespace {

constexpr std::int64_t MiB = 1 << 20;
using Order = std::vector<int>;

// Blocks are freed in this order and asked for again: which come, by their numbers.
Order given_again(CachingAllocator& a, const std::vector<BlockNumber>& blocks, const Order& freed,
                  std::int64_t bytes) {
  std::vector<std::uint64_t> addresses;
  for (const BlockNumber block : blocks) addresses.push_back(a.block(block).address);
  for (const int i : freed) a.free(blocks[static_cast<size_t>(i)]);
  Order order;
  for (size_t i = 0; i < freed.size(); ++i) {
    const std::uint64_t address = a.block(*a.allocate(bytes, 0)).address;
    order.push_back(
        static_cast<int>(std::find(addresses.begin(), addresses.end(), address) - addresses.begin()));
  }
  EXPECT_EQ(a.broken_invariant(), "");
  return order;
}

// Segments of 30 MiB, one block each; a device hands addresses out downwards.
Order segments_again(FreeBlockOrder order, const Order& freed) {
  CachingAllocator a({.order = order});
  std::vector<BlockNumber> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(*a.allocate(30 * MiB, 0));
  return given_again(a, blocks, freed, 30 * MiB);
}

// A segment of 12 MiB in six pieces, of which the last is what remains of it.
Order pieces_again(FreeBlockOrder order, const Order& freed) {
  CachingAllocator a({.order = order});
  a.free(*a.allocate(12 * MiB, 0));
  std::vector<BlockNumber> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(*a.allocate(2 * MiB, 0));
  EXPECT_EQ(a.numbers().reserved_bytes.current, 12 * MiB);
  return given_again(a, blocks, freed, 2 * MiB);
}

// Recorded with PyTorch 2.11 (address), 2.12 (block_record) and 2.13 (segment).
TEST(FreeBlockOrder, OfSegments) {
  for (const Order& freed : {Order{0, 1, 2}, Order{2, 0, 1}, Order{1, 2, 0}}) {
    EXPECT_EQ(segments_again(FreeBlockOrder::address, freed), (Order{2, 1, 0}));
    EXPECT_EQ(segments_again(FreeBlockOrder::block_record, freed), (Order{0, 1, 2}));
    EXPECT_EQ(segments_again(FreeBlockOrder::segment, freed), (Order{0, 1, 2}));
  }
}

TEST(FreeBlockOrder, WithinASegment) {
  EXPECT_EQ(pieces_again(FreeBlockOrder::address, {1, 3, 5}), (Order{1, 3, 5}));
  EXPECT_EQ(pieces_again(FreeBlockOrder::block_record, {1, 3, 5}), (Order{5, 1, 3}));
  EXPECT_EQ(pieces_again(FreeBlockOrder::segment, {1, 3, 5}), (Order{1, 3, 5}));
}

}  // namespace
}  // namespace metaprof
