#pragma once

#include <cstdint>

namespace metaprof {

/// Which of several free blocks of one size the caching allocator takes (c10/cuda/CUDACachingAllocator.cpp, the
/// comparison of blocks).
enum class FreeBlockOrder : uint8_t {
  address,       ///< the one at the lowest address
  block_record,  ///< the one whose record was made first: records are made with a segment and, for the front part,
                 ///< when a block is split; a merged block keeps the record of the part that was freed last
  segment,       ///< one of the segment that came first from the device, there the one at the lowest address
};

}  // namespace metaprof
