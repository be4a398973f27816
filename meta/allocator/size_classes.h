#pragma once

#include <cstdint>

#include "meta/allocator/alloc_conf.h"

namespace metaprof {

// Sizes of PyTorch 2.11's caching allocator, in bytes.
inline constexpr std::uint64_t kMinBlockSize = 512;       // and the step of rounding
inline constexpr std::uint64_t kSmallSize = kMiB;         // largest block of the small pool
inline constexpr std::uint64_t kSmallSegment = 2 * kMiB;  // what the small pool asks of the device
inline constexpr std::uint64_t kMinLargeSegment =
    10 * kMiB;  // requests from here on get a segment of their own size
inline constexpr std::uint64_t kSegmentRounding = 2 * kMiB;

// Size of the block for a request of `bytes` (at least 1, at most 2^60).
std::uint64_t round_size(std::uint64_t bytes, const AllocConf& conf);

// Size of the segment that is asked of the device when no cached block fits a block of `size`.
std::uint64_t segment_size(std::uint64_t size, const AllocConf& conf);

// `value` up to a multiple of `step`.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace metaprof
