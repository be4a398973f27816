#include "profiler/profile.h"

namespace metaprof {
namespace {

// Of all workspaces that were allocated, once more each time that the last step is repeated.
Bytes workspaces(const Trace& trace, Device device, int repeated) {
  Bytes all, of_step;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && static_cast<Phase>(event.detail) == Phase::forward &&
        event.value <= 0)
      of_step = {};
    if (event.kind != Event::Kind::alloc) continue;
    const StorageRecord& storage = trace.storages[event.id];
    if (storage.category != Category::workspace || storage.device != device) continue;
    all += storage.bytes;
    of_step += storage.bytes;
  }
  return {all.count + of_step.count * repeated};
}

}  // namespace

MemoryProfile profile_memory(const Trace& trace, Device device, DeviceAllocator& allocator,
                             const WaitingResults& waiting, int repeated) {
  MemoryProfile profile;
  profile.parameters = parameters_of(trace);
  profile.saved = saved_by_first_forward(trace, device);
  profile.phases = replay(trace, device, allocator, waiting, repeated);
  const auto& failed = profile.phases.out_of_memory;
  profile.peak = peak_moment(trace, device, failed ? failed->event : trace.events.size());
  profile.modules = module_rows(trace, device, profile.parameters, profile.saved);
  profile.unmodelled = unmodelled_rows(trace);
  profile.estimated = estimated_rows(trace);
  profile.attention = attention_rows(trace);
  profile.workspaces = workspaces(trace, device, repeated).count;
  return profile;
}

}  // namespace metaprof
