#include "core/plain_vector.h"

#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <vector>

namespace metaprof {
namespace {

constexpr size_t kMany = 5000000;  // more than 32 MiB, from where on memory is mapped

PlainVector<uint64_t> counted(size_t count) {
  PlainVector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(PlainVector, KeepsItsElementsWhileItGrows) {
  const PlainVector<uint64_t> numbers = counted(kMany);
  ASSERT_EQ(numbers.size(), kMany);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), uint64_t{0}), kMany * (kMany - 1) / 2);
}

TEST(PlainVector, TakesAnElementOfItsOwn) {
  for (const size_t count : {size_t{16}, size_t{1} << 22}) {  // full: the next one makes it grow
    PlainVector<uint64_t> numbers = counted(count);
    ASSERT_EQ(numbers.capacity(), count);
    numbers.push_back(numbers[5]);
    EXPECT_EQ(numbers.back(), 5u);
  }
}

TEST(PlainVector, IsCopiedAndMoved) {
  PlainVector<uint64_t> numbers = counted(kMany);
  PlainVector<uint64_t> copy = numbers;
  copy[0] = 7;
  EXPECT_EQ(numbers[0], 0u);
  numbers = std::move(copy);
  EXPECT_EQ(numbers[0], 7u);
  numbers = counted(3);
  EXPECT_EQ(numbers.size(), 3u);
}

TEST(PlainVector, BecomesShorterAndLonger) {
  PlainVector<uint64_t> numbers = counted(kMany);
  numbers.resize(10);
  numbers.shrink_to_fit();
  EXPECT_EQ(numbers.capacity(), 10u);
  numbers.resize(12);
  EXPECT_EQ(numbers[9], 9u);
  EXPECT_EQ(numbers[11], 0u);
  const std::vector<uint64_t> more(kMany, 3);
  numbers.append(more.begin(), more.end());
  EXPECT_EQ(numbers.size(), kMany + 12);
  numbers.clear();
  EXPECT_TRUE(std::span<const uint64_t>(numbers).empty());
}

}  // namespace
}  // namespace metaprof
