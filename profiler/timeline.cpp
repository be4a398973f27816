#include "profiler/timeline.h"

#include <algorithm>

namespace metaprof {
namespace {

// For each of some storages the tensor that shows it best: a result of the call that made it, else the first
// tensor that was seen of it.
class TensorOfStorage {
 public:
  TensorOfStorage(const Trace& trace, const std::vector<uint32_t>& storages) : trace_(trace) {
    for (const uint32_t storage : storages) best_[storage];
    for (const CallRecord& call : trace.calls) look_at(call);
  }

  const TensorRecord* find(uint32_t storage) const {
    const auto found = best_.find(storage);
    if (found == best_.end()) return nullptr;
    return found->second.result ? found->second.result : found->second.any;
  }

 private:
  struct Best {
    const TensorRecord* result = nullptr;
    const TensorRecord* any = nullptr;
  };

  void look_at(const CallRecord& call) {
    for (uint32_t i = 0; i < uint32_t{call.inputs} + call.outputs; ++i) {
      const TensorRecord& tensor = trace_.tensors[call.first_tensor + i];
      const auto found = best_.find(tensor.storage);
      if (found == best_.end()) continue;
      Best& best = found->second;
      if (!best.any) best.any = &tensor;
      if (!best.result && i >= call.inputs) best.result = &tensor;
    }
  }

  const Trace& trace_;
  std::unordered_map<uint32_t, Best> best_;
};

LargeStorage describe(const Trace& trace, const LiveStorages& live, uint32_t id,
                      const TensorOfStorage& tensors) {
  const StorageRecord& storage = trace.storages[id];
  LargeStorage large;
  large.bytes = live.bytes(id);
  large.category = live.category(id);
  large.name = trace.text(storage.name);
  large.module = trace.text(storage.module);
  if (storage.call != 0) {
    large.op = trace.text(trace.calls[storage.call - 1].op);
    if (large.module.empty()) large.module = trace.text(trace.calls[storage.call - 1].module);
  }
  if (const TensorRecord* tensor = tensors.find(id)) {
    const SizesView shape = trace.shape(*tensor);
    large.shape = Sizes(shape.begin(), shape.end());
    large.dtype = tensor->dtype;
  }
  for (const ParameterRecord& parameter : trace.parameters) {
    if (parameter.storage != id) continue;
    large.name = parameter.names.at(0);
    large.shape = parameter.sizes;
    large.dtype = parameter.dtype;
  }
  return large;
}

std::vector<LargeStorage> largest_alive(const Trace& trace, const LiveStorages& live, size_t most) {
  std::vector<uint32_t> alive;
  for (uint32_t id = 1; id < trace.storages.size(); ++id)
    if (live.alive(id)) alive.push_back(id);
  std::stable_sort(alive.begin(), alive.end(),
                   [&](uint32_t a, uint32_t b) { return live.bytes(a) > live.bytes(b); });
  if (alive.size() > most) alive.resize(most);
  const TensorOfStorage tensors(trace, alive);
  std::vector<LargeStorage> largest;
  largest.reserve(alive.size());
  for (const uint32_t id : alive) largest.push_back(describe(trace, live, id, tensors));
  return largest;
}

}  // namespace

std::vector<Sample> timeline(const Trace& trace, DeviceType device) {
  LiveStorages live(trace, device);
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (live.pass(trace.events[i])) samples.push_back({i, live.by_category()});
  return samples;
}

PeakMoment peak_moment(const Trace& trace, DeviceType device, size_t most_storages, size_t end) {
  PeakMoment peak;
  LiveStorages first(trace, device);
  for (uint32_t i = 0; i < std::min(end, trace.events.size()); ++i) {
    first.pass(trace.events[i]);
    if (first.total() > peak.bytes) {
      peak.bytes = first.total();
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
  peak.largest = largest_alive(trace, live, most_storages);
  return peak;
}

}  // namespace metaprof
