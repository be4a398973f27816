// The smallest memory in which requests are served.

#include "profiler/allocator/least_memory.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

constexpr int64_t kSegment = int64_t{2} << 20;

TEST(LeastMemory, IsFoundToASegment) {
  for (const int64_t least : {int64_t{10}, int64_t{11}, int64_t{37}, int64_t{63}, int64_t{64}}) {
    int asked = 0;
    const Bytes found = least_memory(Bytes{10 * kSegment}, Bytes{64 * kSegment}, [&](Bytes memory) {
      ++asked;
      return memory.count < least * kSegment;
    });
    EXPECT_EQ(found.count, least * kSegment);
    EXPECT_LE(asked, 6);  // 55 sizes
  }
}

TEST(LeastMemory, OfARunThatTakesNoMoreIsWhatItTakes) {
  const auto never_asked = [](Bytes) {
    ADD_FAILURE();
    return false;
  };
  EXPECT_EQ(least_memory(Bytes{4 * kSegment}, Bytes{4 * kSegment}, never_asked).count, 4 * kSegment);
  EXPECT_EQ(least_memory(Bytes{4 * kSegment - 512}, Bytes{4 * kSegment}, never_asked).count, 4 * kSegment);
}

}  // namespace
}  // namespace metaprof
