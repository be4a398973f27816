#include "meta/allocator/size_classes.h"

#include <algorithm>
#include <bit>

namespace metaprof {

namespace {

std::uint64_t divisions_for(std::uint64_t bytes, const AllocConf& conf) {
  const int above_mebibyte = std::bit_width(bytes) - std::bit_width(kMiB);
  return conf
      .roundup_power2_divisions[std::clamp<int>(above_mebibyte, 0, conf.roundup_power2_divisions.size() - 1)];
}

}  // namespace

std::uint64_t round_size(std::uint64_t bytes, const AllocConf& conf) {
  if (bytes < kMinBlockSize) return kMinBlockSize;
  const std::uint64_t divisions = divisions_for(bytes, conf);
  if (divisions > 1 && bytes > kMinBlockSize * divisions)
    return round_up(bytes, std::bit_floor(bytes) / divisions);
  return round_up(bytes, kMinBlockSize);
}

std::uint64_t segment_size(std::uint64_t size, const AllocConf& conf) {
  if (size <= kSmallSize) return kSmallSegment;
  if (size < kMinLargeSegment) return conf.large_segment_size;
  return round_up(size, kSegmentRounding);
}

}  // namespace metaprof
