#include "estimate/plan/peak_bound.h"

#include <vector>

namespace metaprof {
namespace {

// Storages that outlive the phase in which they were made. Not those of the forward: what it leaves is what a plan
// may do without.
std::vector<bool> lasting_storages(const Trace& trace) {
  std::vector<size_t> made(trace.storages.size());  // in which phase, counted from 1
  std::vector<bool> lasting(trace.storages.size());
  size_t number = 0;
  Phase phase = Phase::setup;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) {
      ++number;
      phase = static_cast<Phase>(event.detail);
    }
    if (event.kind == Event::Kind::alloc && trace.storages[event.id].device.is_cuda()) {
      made[event.id] = number;
      lasting[event.id] = phase != Phase::forward && phase != Phase::recompute;
    }
    if (event.kind == Event::Kind::free && made[event.id] == number) lasting[event.id] = false;
  }
  return lasting;
}

}  // namespace

PeakBound peak_bound(const Trace& trace) {
  const std::vector<bool> lasting = lasting_storages(trace);
  std::vector<uint32_t> seen(trace.storages.size());  // 1 + the last call that has it
  std::vector<const CallRecord*> open;                // null: a node
  PeakBound most;
  Bytes alive;  // of lasting ones
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::alloc && lasting[event.id]) alive += trace.bytes(event.id);
    if (event.kind == Event::Kind::free && lasting[event.id]) alive = alive - trace.bytes(event.id);
    if (event.kind == Event::Kind::call) open.push_back(&trace.calls[event.id]);
    if (event.kind == Event::Kind::node) open.push_back(nullptr);
    if (event.kind != Event::Kind::end || open.empty()) continue;
    const CallRecord* const ended = open.back();
    open.pop_back();
    if (!ended || ended->composite) continue;
    const CallRecord& call = *ended;
    const auto number = static_cast<uint32_t>(&call - trace.calls.data()) + 1;
    Bytes needs = alive;
    for (uint32_t i = call.first_tensor; i < call.first_tensor + call.inputs + call.outputs; ++i) {
      const uint32_t storage = trace.tensors[i].storage;
      if (storage == 0 || lasting[storage] || seen[storage] == number) continue;
      if (trace.storages[storage].device.is_cpu()) continue;
      seen[storage] = number;
      needs += trace.bytes(storage);
    }
    if (needs > most.bytes)
      most = {needs, std::string(trace.text(call.op)), std::string(trace.text(call.module))};
  }
  return most;
}

}  // namespace metaprof
