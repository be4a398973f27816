#include "step/cudagraphs/memory_statistics.h"

namespace metaprof {

MemoryStatistics statistics_of(const CachingAllocator& allocator) {
  const AllocatorNumbers numbers = allocator.numbers();
  MemoryStatistics result{
      .allocated = numbers.allocated_bytes, .reserved = numbers.reserved_bytes, .segments_by_pool = {}};
  for (const SegmentSnapshot& segment : allocator.snapshot())
    result.segments_by_pool[segment.pool] += static_cast<int64_t>(segment.size);
  return result;
}

}  // namespace metaprof
