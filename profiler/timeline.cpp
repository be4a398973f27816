#include "profiler/timeline.h"

#include <algorithm>

namespace metaprof {
namespace {

std::vector<LargeStorage> largest_alive(const Trace& trace, const LiveStorages& live) {
  std::vector<uint32_t> alive;
  for (uint32_t id = 1; id < trace.storages.size(); ++id)
    if (live.alive(id)) alive.push_back(id);
  std::stable_sort(alive.begin(), alive.end(),
                   [&](uint32_t a, uint32_t b) { return live.bytes(a) > live.bytes(b); });
  const StorageDescriber describer(trace);
  std::vector<LargeStorage> largest;
  largest.reserve(alive.size());
  for (const uint32_t id : alive) {
    largest.push_back(describer.describe(id));
    largest.back().bytes = live.bytes(id);
    largest.back().category = live.category(id);
  }
  return largest;
}

}  // namespace

std::vector<Sample> timeline(const Trace& trace, Device device) {
  LiveStorages live(trace, device);
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (live.pass(trace.events[i])) samples.push_back({i, live.by_category()});
  return samples;
}

PeakMoment peak_moment(const Trace& trace, Device device, size_t end) {
  PeakMoment peak;
  Bytes total;
  for (uint32_t i = 0; i < std::min(end, trace.events.size()); ++i) {
    const Event& event = trace.events[i];
    const bool born = event.kind == Event::Kind::alloc;
    if ((!born && event.kind != Event::Kind::free) || trace.storages[event.id].device != device) continue;
    born ? total += trace.bytes(event.id) : total -= trace.bytes(event.id);
    if (total > peak.bytes) {
      peak.bytes = total;
      peak.event = i;
    }
  }
  if (peak.bytes.count == 0) return peak;

  LiveStorages live(trace, device);
  Cursor cursor(trace);
  for (uint32_t i = 0; i <= peak.event; ++i) {
    live.pass(trace.events[i]);
    cursor.pass(trace.events[i]);
  }
  peak.part = cursor.part();
  peak.op = cursor.op();
  peak.module = cursor.module();
  peak.by_category = live.by_category();
  peak.largest = largest_alive(trace, live);
  return peak;
}

}  // namespace metaprof
