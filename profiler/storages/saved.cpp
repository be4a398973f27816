#include "profiler/storages/saved.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "profiler/storages/live_storages.h"

namespace metaprof {
namespace {

// Storages that each node holds when the first forward is over, in the order of saving. A recording has them where the backward begins:
// `zero_grad` may stand before that, and a forward of the loss after it.
std::unordered_map<uint32_t, std::vector<uint32_t>> held_after_first_forward(const Trace& trace) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> held;
  std::optional<uint32_t> step;  // of the first forward
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) {
      const Phase phase = static_cast<Phase>(event.detail);
      if (step && (event.id != *step || (phase != Phase::forward && phase != Phase::zero_grad))) break;
      if (phase == Phase::forward) step = event.id;
    }
    if (event.kind == Event::Kind::save) held[static_cast<uint32_t>(event.value)].push_back(event.id);
    if (event.kind == Event::Kind::release) {
      auto& storages = held[static_cast<uint32_t>(event.value)];
      const auto found = std::find(storages.begin(), storages.end(), event.id);
      if (found != storages.end()) storages.erase(found);
    }
  }
  return held;
}

// Storages that are alive when the first forward ends.
LiveStorages live_after_first_forward(const Trace& trace, Device device) {
  LiveStorages live(trace, device);
  bool in_forward = false;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase) {
      if (in_forward) break;
      in_forward = static_cast<Phase>(event.detail) == Phase::forward;
    }
    live.pass(event);
  }
  return live;
}

void add_besides(const Trace& trace, Device device, const std::unordered_set<uint32_t>& kept, Saved& saved) {
  const LiveStorages live = live_after_first_forward(trace, device);
  for (uint32_t storage = 0; storage < trace.storages.size(); ++storage) {
    if (!live.on_device(storage) || !live.alive(storage) || kept.contains(storage)) continue;
    const Category category = live.category(storage);
    if (category != Category::activation && category != Category::temporary) continue;
    ++saved.besides_count;
    saved.besides_bytes += live.bytes(storage);
  }
}

}  // namespace

std::vector<SavedStorage> held_by_first_forward(const Trace& trace, Device device) {
  std::vector<SavedStorage> all;
  if (trace.losses.empty() || trace.losses[0] == 0) return all;
  const auto held = held_after_first_forward(trace);
  std::unordered_set<uint32_t> state;
  for (const ParameterRecord& parameter : trace.parameters) state.insert(parameter.storage);
  std::vector<bool> visited(trace.nodes.size());
  std::vector<uint32_t> stack{trace.losses[0]};
  while (!stack.empty()) {
    const uint32_t number = stack.back();
    stack.pop_back();
    if (number == 0 || visited[number - 1]) continue;
    visited[number - 1] = true;
    const NodeRecord& node = trace.nodes[number - 1];
    if (const auto kept = held.find(number - 1); kept != held.end()) {
      for (const uint32_t storage : kept->second) {
        const StorageRecord& record = trace.storages[storage];
        if (record.device == device && record.bytes.count > 0 && !state.contains(storage))
          all.push_back({storage, number - 1, record.bytes});
      }
    }
    for (uint32_t i = 0; i < node.edge_count; ++i) stack.push_back(trace.edges[node.first_edge + i]);
    stack.push_back(node.inner);  // no edge leads there, but it keeps what it saves as any other
  }
  return all;
}

Saved saved_by_first_forward(const Trace& trace, Device device) {
  Saved saved;
  std::unordered_set<uint32_t> seen;
  std::map<std::string, SavedByNode> by_node;
  for (const SavedStorage& held : held_by_first_forward(trace, device)) {
    if (!seen.insert(held.storage).second) continue;
    saved.storages.push_back(held);
    SavedByNode& row = by_node[std::string(trace.text(trace.nodes[held.node].name))];
    ++row.count;
    row.bytes += held.bytes;
    ++saved.count;
    saved.bytes += held.bytes;
  }
  add_besides(trace, device, seen, saved);
  for (auto& [name, row] : by_node) {
    row.node = name;
    saved.by_node.push_back(std::move(row));
  }
  return saved;
}

}  // namespace metaprof
