#include "profiler/storages/storage_stays.h"

#include <algorithm>

#include "profiler/storages/live_storages.h"

namespace metaprof {

std::vector<StorageStay> storage_stays(const Trace& trace, Device device, size_t end) {
  constexpr size_t kNone = SIZE_MAX;
  const StorageDescriber describer(trace);
  LiveStorages live(trace, device);
  std::vector<StorageStay> stays;
  std::vector<size_t> open(trace.storages.size(), kNone);  // the stay that has not ended, by storage
  for (uint32_t i = 0; i < std::min(end, trace.events.size()); ++i) {
    const Event& event = trace.events[i];
    if (!live.pass(event)) continue;
    size_t& stay = open[event.id];
    const bool goes_on =
        stay != kNone && live.alive(event.id) && stays[stay].storage.category == live.category(event.id);
    if (goes_on) continue;
    if (stay != kNone) stays[stay].to = i;
    stay = kNone;
    if (!live.alive(event.id)) continue;
    stay = stays.size();
    stays.push_back({.storage = describer.describe(event.id), .from = i});
    stays.back().storage.bytes = live.bytes(event.id);
    stays.back().storage.category = live.category(event.id);
  }
  return stays;
}

}  // namespace metaprof
