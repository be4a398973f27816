#pragma once
// Everything that is said of the memory of a run: what a trace gives when all of the profiler looks at it.

#include "profiler/allocator/phases.h"
#include "profiler/attention.h"
#include "profiler/estimated.h"
#include "profiler/modules/modules.h"
#include "profiler/modules/parameters.h"
#include "profiler/storages/saved.h"
#include "profiler/timeline.h"
#include "profiler/unmodelled.h"

namespace metaprof {

struct MemoryProfile {
  Parameters parameters;
  Saved saved;
  Phases phases;
  PeakMoment peak;  ///< of requested bytes; the allocator's own peaks are in `phases`
  std::vector<ModuleRow> modules;
  std::vector<UnmodelledRow> unmodelled;
  std::vector<EstimatedRow> estimated;
  std::vector<AttentionRow> attention;
  int64_t workspaces = 0;  ///< of libraries: bytes of all that were allocated
};

/// `allocator` must be fresh. `waiting`, `repeated`: as for `replay`.
MemoryProfile profile_memory(const Trace& trace, Device device, DeviceAllocator& allocator,
                             const WaitingResults& waiting = {}, int repeated = 0);

}  // namespace metaprof
