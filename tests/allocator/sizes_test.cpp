#include <gtest/gtest.h>

#include "meta/allocator/device_memory.h"
#include "meta/allocator/failed_request.h"
#include "meta/allocator/size_classes.h"

namespace metaprof {
namespace {

struct SizeCase {
  std::uint64_t bytes;
  std::uint64_t expected;
};

TEST(RoundSize, MultiplesOf512) {
  for (const auto& [bytes, expected] : {SizeCase{1, 512},
                                        {511, 512},
                                        {512, 512},
                                        {513, 1024},
                                        {1024, 1024},
                                        {1'048'575, 1'048'576},
                                        {12'058'624, 12'058'624}}) {
    EXPECT_EQ(round_size(bytes, {}), expected) << bytes;
  }
}

TEST(RoundSize, QuartersBetweenPowersOfTwo) {
  const AllocConf conf = parse_alloc_conf("roundup_power2_divisions:4");
  const SizeCase cases[] = {
      {2048, 2048},                // not more than 512 * 4: a multiple of 512
      {2049, 2560},                // between 2048 and 4096 in steps of 2048 / 4 = 512
      {1200 * kKiB, 1280 * kKiB},  // 1024, 1280, 1536, 1792 KiB
      {1280 * kKiB, 1280 * kKiB},
      {1280 * kKiB + 1, 1536 * kKiB},
      {1800 * kKiB, 2048 * kKiB},
      {64 * kMiB, 64 * kMiB},  // a power of two stays
      {64 * kMiB + 1, 80 * kMiB},
  };
  for (const auto& [bytes, expected] : cases) EXPECT_EQ(round_size(bytes, conf), expected) << bytes;
}

TEST(RoundSize, DivisionsBySizeClass) {
  const AllocConf conf = parse_alloc_conf("roundup_power2_divisions:[2:0,4:2,8:1,>:8]");
  const SizeCase cases[] = {
      {3 * kMiB + 1, 3 * kMiB + 512},          // [2, 4) MiB: 0, multiples of 512
      {5 * kMiB, 6 * kMiB},                    // [4, 8): steps of 2 MiB
      {9 * kMiB + 1, 9 * kMiB + 512},          // [8, 16): 1 is as 0
      {17 * kMiB, 18 * kMiB},                  // [16, 32): steps of 2 MiB
      {100 * 1024 * kMiB, 104 * 1024 * kMiB},  // 100 GiB, beyond the last class: steps of 64 GiB / 8
  };
  for (const auto& [bytes, expected] : cases) EXPECT_EQ(round_size(bytes, conf), expected) << bytes;
}

TEST(SegmentSize, ByTheBlock) {
  const SizeCase cases[] = {
      {512, 2 * kMiB},         {kMiB, 2 * kMiB},
      {kMiB + 512, 20 * kMiB}, {10 * kMiB - 512, 20 * kMiB},
      {10 * kMiB, 10 * kMiB},  {10 * kMiB + 512, 12 * kMiB},
      {21 * kMiB, 22 * kMiB},
  };
  for (const auto& [size, expected] : cases) EXPECT_EQ(segment_size(size, {}), expected) << size;
  EXPECT_EQ(segment_size(2 * kMiB, parse_alloc_conf("large_segment_size_mb:25")), 25 * kMiB);
}

TEST(DeviceMemory, HandsAddressesOutDownwards) {
  DeviceMemory device({.end_address = 0x1'0000'0000});  // 4096 MiB
  const auto mebibytes = [&](std::uint64_t size) { return *device.allocate(size * kMiB) / kMiB; };
  EXPECT_EQ(mebibytes(20), 4076u);
  EXPECT_EQ(mebibytes(2), 4032u);   // the next multiple of 32 MiB with 32 MiB room: 4076 - 32 = 4044 -> 4032
  EXPECT_EQ(mebibytes(12), 4020u);  // below that block
  EXPECT_EQ(mebibytes(2), 4034u);   // upwards in the open block
  for (int i = 2; i < 16; ++i) EXPECT_EQ(mebibytes(2), 4032u + 2 * i);
  EXPECT_EQ(mebibytes(2), 3968u);  // the 17th opens another: 4020 - 32 = 3988 -> 3968
}

TEST(DeviceMemory, DoesNotGiveAFreedAddressAgain) {
  DeviceMemory device({.capacity = 40 * kMiB});
  const std::uint64_t first = *device.allocate(20 * kMiB);
  device.free(first, 20 * kMiB);
  EXPECT_EQ(*device.allocate(20 * kMiB), first - 20 * kMiB);
  EXPECT_EQ(device.used(), 20 * kMiB);
}

TEST(DeviceMemory, UpwardsTakesTheLowestFreeAddress) {
  DeviceMemory device({.order = AddressOrder::upwards, .first_address = 0});
  EXPECT_EQ(*device.allocate(20 * kMiB), 0u);
  EXPECT_EQ(*device.allocate(4 * kMiB), 20 * kMiB);
  EXPECT_EQ(*device.allocate(2 * kMiB), 24 * kMiB);
  device.free(0, 20 * kMiB);
  EXPECT_EQ(*device.allocate(24 * kMiB), 26 * kMiB);
  EXPECT_EQ(*device.allocate(18 * kMiB), 0u);
  EXPECT_EQ(*device.allocate(2 * kMiB), 18 * kMiB);
}

TEST(DeviceMemory, IsFullAtItsCapacity) {
  DeviceMemory device({.capacity = 100 * kMiB, .used_by_others = 30 * kMiB});
  EXPECT_EQ(device.unused(), 70 * kMiB);
  EXPECT_FALSE(device.allocate(70 * kMiB + 1).has_value());
  EXPECT_TRUE(device.map(0, 60 * kMiB, 20 * kMiB));
  EXPECT_FALSE(device.map(60 * kMiB, 20 * kMiB, 20 * kMiB));
  EXPECT_TRUE(device.allocate(10 * kMiB).has_value());
  device.unmap(0, 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(device.unused(), 60 * kMiB);
}

TEST(FormatSize, AsTheFrameworkWritesIt) {
  EXPECT_EQ(format_size(0), "0 bytes");
  EXPECT_EQ(format_size(1024), "1024 bytes");
  EXPECT_EQ(format_size(1536), "1.50 KiB");
  EXPECT_EQ(format_size(kMiB), "1024.00 KiB");
  EXPECT_EQ(format_size(1000 * kMiB), "1000.00 MiB");
  EXPECT_EQ(format_size(1536 * kMiB), "1.50 GiB");
}

}  // namespace
}  // namespace metaprof
