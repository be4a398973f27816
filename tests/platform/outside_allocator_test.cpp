#include "meta/platform/outside_allocator.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

constexpr int64_t kMiB = 1 << 20;

OutsideAllocator outside(const char* card) { return outside_allocator(platform_named(card)); }

// 1 KiB for each resident thread, and what is reported of the architecture.
TEST(OutsideAllocator, LocalMemoryOfTheCardAndReportsOfItsArchitecture) {
  EXPECT_EQ(outside("t4").least.count, (40 * 1 + 62) * kMiB) << "40 · 1024 threads";
  EXPECT_EQ(outside("t4").most.count, (40 * 1 + 127) * kMiB);
  EXPECT_EQ(outside("rtx4090").most.count, (128 * 3 / 2 + 311) * kMiB) << "128 · 1536 threads";
  EXPECT_EQ(outside("h200").most.count, (132 * 2 + 498) * kMiB) << "132 · 2048 threads";
  EXPECT_NE(outside("t4").source.find("capability 7.5 and PyTorch 2.1 to 2.10 (Open-Sora#697"),
            std::string::npos)
      << outside("t4").source;
}

TEST(OutsideAllocator, AnArchitectureWithoutReportsIsCountedAsTheNearest) {
  // 148 · 2048 threads of a B200, and what is reported of 9.0.
  EXPECT_EQ(outside("b200").most.count, (148 * 2 + 498) * kMiB);
  EXPECT_TRUE(outside("b200").source.ends_with("; of 10.0 there is none"));
  Platform platform = platform_named("b200");
  platform.hardware.multiprocessors = 0;  // a file that does not say how many
  EXPECT_EQ(outside_allocator(platform).most, outside("b200").most);
}

TEST(OutsideAllocator, ACpuHasNoContext) {
  EXPECT_EQ(outside("cpu").most.count, 0);
  EXPECT_EQ(outside("cpu").source, "");
}

}  // namespace
}  // namespace metaprof
