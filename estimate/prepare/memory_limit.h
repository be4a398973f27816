#pragma once
// What of a device's memory a run can have.

#include "core/units.h"
#include "meta/platform/outside_allocator.h"
#include "meta/platform/platform.h"
#include "step/options.h"

namespace metaprof {

struct MemoryLimit {
  OutsideAllocator outside;  ///< memory that the allocator cannot have
  double margin = 0;         ///< share of the device's memory that is to stay free
  Bytes available;           ///< what is left for the allocator
};

/// Errors: the margin leaves nothing; neither --context nor --margin is a size or share.
MemoryLimit memory_limit(const RunOptions& options, const Platform& platform);

/// Memory of the device that the allocator cannot have: what --context says, else what was reported.
OutsideAllocator outside_of(const RunOptions& options, const Platform& platform);
/// What is left for the allocator, without the margin. Errors: as memory_limit.
Bytes available_memory(const RunOptions& options, const Platform& platform);
/// Of --margin, from 0 to 1.
double margin_of(const RunOptions& options);
/// No device has more memory than this.
Bytes unlimited_memory();

}  // namespace metaprof
