// The table of cards against itself: figures that follow from others.

#include "meta/platform/hardware.h"

#include <gtest/gtest.h>

#include <cmath>

namespace metaprof {
namespace {

// An SM of Volta, Turing and the A100 has 64 cores, every other 128; each computes a multiply-add per cycle.
TEST(Cards, Fp32FollowsFromCoresAndClock) {
  for (const Hardware& card : known_hardware()) {
    // The H20's sheet says more than its clock gives; the A10G has no sheet (docs/reference/devices.md).
    if (card.is_cpu() || card.name == "h20" || card.name == "a10g") continue;
    const double cores = card.sm <= 80 ? 64 : 128;
    const double flops = 2 * cores * card.multiprocessors * static_cast<double>(card.clock_khz) * 1e3;
    EXPECT_NEAR(flops / card.flops_f32, 1, 0.011) << card.name;
  }
}

// Two transfers a cycle over a bus whose width is a multiple of 32 bits.
TEST(Cards, BandwidthFollowsFromTheMemorysClock) {
  for (const Hardware& card : known_hardware()) {
    if (card.is_cpu()) continue;
    const double bits = card.bandwidth * 8 / (2 * static_cast<double>(card.memory_clock_khz) * 1e3);
    EXPECT_NEAR(bits / (32 * std::round(bits / 32)), 1, bits > 1000 ? 0.03 : 0.001)
        << card.name << ' ' << bits;
  }
}

}  // namespace
}  // namespace metaprof
