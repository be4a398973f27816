#include "profiler/profile.h"

namespace metaprof {

MemoryProfile profile_memory(const Trace& trace, Device device, DeviceAllocator& allocator, size_t largest,
                             const WaitingResults& waiting) {
  MemoryProfile profile;
  profile.parameters = parameters_of(trace);
  profile.saved = saved_by_first_forward(trace, device);
  profile.phases = replay(trace, device, allocator, waiting);
  const auto& failed = profile.phases.out_of_memory;
  profile.peak = peak_moment(trace, device, largest, failed ? failed->event : trace.events.size());
  profile.modules = module_rows(trace, device, profile.saved);
  profile.unmodelled = unmodelled_rows(trace);
  profile.estimated = estimated_rows(trace);
  profile.attention = attention_rows(trace);
  for (const StorageRecord& storage : trace.storages)
    if (storage.category == Category::workspace && storage.device == device)
      profile.workspaces += storage.bytes.count;
  return profile;
}

}  // namespace metaprof
