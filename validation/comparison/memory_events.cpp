#include "validation/comparison/memory_events.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof {
namespace {

using Kind = MemoryEvent::Kind;

std::span<const MemoryEvent> returns_from(std::span<const MemoryEvent> events, size_t begin) {
  const auto rest = events.subspan(begin);
  const auto end = std::ranges::find_if(rest, [](const MemoryEvent& e) { return e.kind != Kind::give_back; });
  return rest.first(static_cast<size_t>(end - rest.begin()));
}

// Index of the first return whose storage, as we number them, is not among these; the number of returns if there
// is none.
template <class Number>  // uint32_t(const MemoryEvent&)
size_t first_not_in(const std::unordered_set<uint32_t>& storages, std::span<const MemoryEvent> returns,
                    Number number) {
  const auto found = std::ranges::find_if(
      returns, [&](const MemoryEvent& event) { return !storages.contains(number(event)); });
  return static_cast<size_t>(found - returns.begin());
}

template <class Number>
std::unordered_set<uint32_t> set_of(std::span<const MemoryEvent> returns, Number number) {
  std::unordered_set<uint32_t> set;
  for (const MemoryEvent& event : returns) set.insert(number(event));
  return set;
}

}  // namespace

std::vector<MemoryEvent> traced_events(const Trace& trace, size_t from, size_t to, Device device,
                                       const std::unordered_set<uint32_t>& hidden) {
  std::vector<MemoryEvent> events;
  for (size_t i = from; i < to; ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Event::Kind::phase && Phase(event.detail) != Phase::recompute)
      events.push_back({.kind = Kind::phase, .source = i});
    if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) continue;
    const StorageRecord& storage = trace.storages[event.id];
    if (storage.device != device || storage.bytes.count == 0) continue;
    const bool born = event.kind == Event::Kind::alloc;
    if (born && hidden.contains(event.id)) continue;
    events.push_back({born ? Kind::request : Kind::give_back, event.id, storage.bytes.count, i});
  }
  return events;
}

int64_t requested_bytes(std::span<const MemoryEvent> events) {
  int64_t sum = 0;
  for (const MemoryEvent& event : events)
    if (event.kind == Kind::request) sum += event.bytes;
  return sum;
}

std::optional<EventDifference> compare_events(std::span<const MemoryEvent> recorded,
                                              std::span<const MemoryEvent> ours, StorageMap& known,
                                              bool prefix) {
  const auto our_number = [](const MemoryEvent& event) { return static_cast<uint32_t>(event.storage); };
  const auto as_ours = [&](const MemoryEvent& event) { return known.ours(event.storage); };
  size_t i = 0, j = 0;
  while (i < recorded.size() || j < ours.size()) {
    if (prefix && i == recorded.size()) return {};
    const auto theirs = returns_from(recorded, i), mine = returns_from(ours, j);
    const size_t missing = first_not_in(set_of(mine, our_number), theirs, as_ours);
    const bool cut = prefix && i + theirs.size() == recorded.size();  // the rest of these may lie behind it
    const size_t foreign = cut ? mine.size() : first_not_in(set_of(theirs, as_ours), mine, our_number);
    // Where one side has nothing of its own to show, its next request is shown.
    if (missing != theirs.size() || foreign != mine.size()) return EventDifference{i + missing, j + foreign};
    i += theirs.size();
    j += mine.size();
    if (i == recorded.size() && (prefix || j == ours.size())) return {};
    if (i == recorded.size() || j == ours.size() || recorded[i].kind != ours[j].kind ||
        recorded[i].bytes != ours[j].bytes)
      return EventDifference{i, j};
    if (recorded[i].kind == Kind::request) known.rebind(recorded[i].storage, our_number(ours[j]));
    ++i;
    ++j;
  }
  return {};
}

AtWork at_work(const Trace& trace, size_t from, size_t event) {
  AtWork result;
  for (size_t i = from; i < event; ++i) {
    const Event& seen = trace.events[i];
    if (seen.kind == Event::Kind::call) result.begin(trace.text(trace.calls[seen.id].op));
    if (seen.kind == Event::Kind::node)
      result.begin(fmt::format("evaluate {}", trace.text(trace.nodes[seen.id].name)));
    if (seen.kind == Event::Kind::end) result.end();
  }
  return result;
}

}  // namespace metaprof
