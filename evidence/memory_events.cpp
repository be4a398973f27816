#include "evidence/memory_events.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof {

std::vector<MemoryEvent> recorded_events(std::span<const RecordedLine> lines) {
  std::vector<MemoryEvent> events;
  for (size_t i = 0; i < lines.size(); ++i) {
    const RecordedLine& line = lines[i];
    if (line.kind == RecordedLine::Kind::allocate) events.push_back({true, line.storage, line.bytes, i});
    if (line.kind == RecordedLine::Kind::free) events.push_back({false, line.storage, 0, i});
  }
  return events;
}

std::vector<MemoryEvent> traced_events(const Trace& trace, size_t from, size_t to,
                                       const std::unordered_set<uint32_t>& hidden) {
  std::vector<MemoryEvent> events;
  for (size_t i = from; i < to; ++i) {
    const Event& event = trace.events[i];
    if (event.kind != Event::Kind::alloc && event.kind != Event::Kind::free) continue;
    const StorageRecord& storage = trace.storages[event.id];
    if (!storage.device.is_cuda()) continue;
    if (event.kind == Event::Kind::alloc && hidden.contains(event.id)) continue;
    events.push_back({event.kind == Event::Kind::alloc, event.id, storage.bytes.count, i});
  }
  return events;
}

int64_t requested_bytes(std::span<const MemoryEvent> events) {
  int64_t sum = 0;
  for (const MemoryEvent& event : events)
    if (event.allocation) sum += event.bytes;
  return sum;
}

namespace {

size_t end_of_frees(std::span<const MemoryEvent> events, size_t at) {
  while (at < events.size() && !events[at].allocation) ++at;
  return at;
}

// The first free of ours that the recording does not have in this run; `end` if there is none.
size_t first_foreign(std::span<const MemoryEvent> recorded, std::span<const MemoryEvent> ours, size_t begin,
                     size_t end, size_t recorded_begin, size_t recorded_end, StorageMap& known) {
  for (size_t j = begin; j < end; ++j) {
    const bool found =
        std::any_of(recorded.begin() + static_cast<ptrdiff_t>(recorded_begin),
                    recorded.begin() + static_cast<ptrdiff_t>(recorded_end), [&](const MemoryEvent& event) {
                      return known.ours(event.storage) == static_cast<uint32_t>(ours[j].storage);
                    });
    if (!found) return j;
  }
  return end;
}

size_t first_missing(std::span<const MemoryEvent> recorded, std::span<const MemoryEvent> ours, size_t begin,
                     size_t end, size_t ours_begin, size_t ours_end, StorageMap& known) {
  for (size_t i = begin; i < end; ++i) {
    const uint32_t wanted = known.ours(recorded[i].storage);
    const bool found = std::any_of(
        ours.begin() + static_cast<ptrdiff_t>(ours_begin), ours.begin() + static_cast<ptrdiff_t>(ours_end),
        [&](const MemoryEvent& event) { return wanted == static_cast<uint32_t>(event.storage); });
    if (!found) return i;
  }
  return end;
}

}  // namespace

std::optional<EventDifference> compare_events(std::span<const MemoryEvent> recorded,
                                              std::span<const MemoryEvent> ours, StorageMap& known,
                                              bool prefix) {
  size_t i = 0, j = 0;
  while (i < recorded.size() || j < ours.size()) {
    if (prefix && i == recorded.size()) return {};
    const size_t i_end = end_of_frees(recorded, i), j_end = end_of_frees(ours, j);
    const size_t missing = first_missing(recorded, ours, i, i_end, j, j_end, known);
    const bool cut = prefix && i_end == recorded.size();  // the rest of this run may lie behind the prefix
    const size_t foreign = cut ? j_end : first_foreign(recorded, ours, j, j_end, i, i_end, known);
    if (missing != i_end || foreign != j_end) {
      // Where one side has nothing of its own to show, its next request is shown.
      return EventDifference{missing, foreign};
    }
    i = i_end;
    j = j_end;
    if (i == recorded.size() && j == ours.size()) return {};
    if (prefix && i == recorded.size()) return {};
    if (i == recorded.size() || j == ours.size() || recorded[i].bytes != ours[j].bytes)
      return EventDifference{i, j};
    known.rebind(recorded[i].storage, static_cast<uint32_t>(ours[j].storage));
    ++i;
    ++j;
  }
  return {};
}

std::string show_event(std::span<const MemoryEvent> events, size_t index,
                       std::span<const RecordedLine> lines) {
  if (index >= events.size()) return "the end";
  const MemoryEvent& event = events[index];
  std::vector<std::string_view> open;
  for (size_t i = 0; i < event.source; ++i) {
    if (lines[i].kind == RecordedLine::Kind::begin) open.push_back(lines[i].name);
    if (lines[i].kind == RecordedLine::Kind::end) open.pop_back();
  }
  std::string text = event.allocation ? fmt::format("+ {} {}", event.storage, event.bytes)
                                      : fmt::format("- {}", event.storage);
  if (!open.empty()) text += fmt::format(" in {}", fmt::join(open, " > "));
  return fmt::format("{} (line {})", text, lines[event.source].number);
}

std::string show_event(std::span<const MemoryEvent> events, size_t index, const Trace& trace, size_t from,
                       const StorageMap& known) {
  if (index >= events.size()) return "the end";
  const MemoryEvent& event = events[index];
  std::vector<std::string> open;
  for (size_t i = from; i < event.source; ++i) {
    const Event& seen = trace.events[i];
    if (seen.kind == Event::Kind::call) open.emplace_back(trace.text(trace.calls[seen.id].op));
    if (seen.kind == Event::Kind::node)
      open.push_back(fmt::format("evaluate {}", trace.text(trace.nodes[seen.id].name)));
    if (seen.kind == Event::Kind::end && !open.empty()) open.pop_back();
  }
  const int64_t recorded = known.recorded(static_cast<uint32_t>(event.storage));
  std::string text = event.allocation ? fmt::format("+ {}", event.bytes)
                     : recorded       ? fmt::format("- {}", recorded)
                                      : fmt::format("- a block of {} bytes", event.bytes);
  if (!open.empty()) text += fmt::format(" in {}", fmt::join(open, " > "));
  return text;
}

}  // namespace metaprof
