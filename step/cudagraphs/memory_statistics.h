#pragma once
// What a caching allocator holds, in the default pool and in those of CUDA graphs.

#include <map>

#include "meta/allocator/caching_allocator.h"

namespace metaprof {

/// Bytes.
struct MemoryStatistics {
  AllocatorNumber allocated, reserved;
  std::map<PoolId, int64_t> segments_by_pool;  ///< {0, 0}: the default pool
};

MemoryStatistics statistics_of(const CachingAllocator& allocator);

}  // namespace metaprof
