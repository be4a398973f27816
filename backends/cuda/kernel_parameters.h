#pragma once
// What kernels.cu is called with, for both sides.

namespace metaprof::cuda {

struct alignas(16) Word {
  unsigned x, y, z, w;
};

/// The most regions of one launch; the parameters of a kernel have 4 KiB.
inline constexpr int kMostRegions = 64;

/// Memory that a kernel reads or writes, in words of 16 bytes.
struct Regions {
  unsigned long long address[kMostRegions];
  unsigned long long words[kMostRegions];   ///< that are there, at least 1
  unsigned long long amount[kMostRegions];  ///< to be read or written
  int first_block[kMostRegions + 1];        ///< of each region; behind the last: all blocks
  int count;                                ///< of the regions
  int reads;                                ///< of the regions; the others are written
};

}  // namespace metaprof::cuda
