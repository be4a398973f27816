// The first event in which the log of a recording and a trace differ.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "evidence/allocator/recording.h"
#include "evidence/check.h"
#include "formats/gzip_lines.h"

namespace metaprof {
namespace {

// A request or a return. Requests of both sides are matched by their order, so that a return names the
// request that it undoes.
struct DeviceEvent {
  enum class Kind : uint8_t { request, give_back, phase };
  Kind kind = Kind::request;
  uint32_t request = 0;  // its number
  int64_t bytes = 0;     // of a phase: its number
  size_t source = 0;     // line of the log, or index of the trace's event
};

std::vector<DeviceEvent> events_of(const Recording& recording) {
  using From = RecordedEvent::Kind;
  std::vector<DeviceEvent> events;
  std::vector<int64_t> bytes(recording.allocations);
  for (const RecordedEvent& event : recording.events) {
    if (event.kind == From::malloc) {
      bytes[event.allocation] = static_cast<int64_t>(event.bytes);
      events.push_back({DeviceEvent::Kind::request, event.allocation, bytes[event.allocation], event.line});
    } else if (event.kind == From::free) {
      events.push_back({DeviceEvent::Kind::give_back, event.allocation, bytes[event.allocation], event.line});
    } else if (event.kind == From::phase) {
      events.push_back({DeviceEvent::Kind::phase, 0, static_cast<int64_t>(event.bytes), event.line});
    }
  }
  return events;
}

std::vector<DeviceEvent> events_of(const Trace& trace, DeviceType device) {
  std::vector<DeviceEvent> events;
  struct Live {
    uint32_t request;
    int64_t bytes;
  };
  std::unordered_map<uint32_t, Live> live;  // by storage
  uint32_t requests = 0;
  int64_t phases = 0;
  const auto request = [&](const Event& event, size_t index) {
    if (event.value == 0) return;
    live[event.id] = {requests, event.value};
    events.push_back({DeviceEvent::Kind::request, requests++, event.value, index});
  };
  const auto give_back = [&](uint32_t storage, size_t index) {
    const auto found = live.find(storage);
    if (found == live.end()) return;
    events.push_back({DeviceEvent::Kind::give_back, found->second.request, found->second.bytes, index});
    live.erase(found);
  };
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const bool on_device = (event.kind == Event::Kind::alloc || event.kind == Event::Kind::resize) &&
                           trace.storages[event.id].device.type == device;
    if (event.kind == Event::Kind::phase && Phase(event.detail) != Phase::recompute)
      events.push_back({DeviceEvent::Kind::phase, 0, phases++, i});
    if (event.kind == Event::Kind::free) give_back(event.id, i);
    if (event.kind == Event::Kind::alloc && on_device) request(event, i);
    if (event.kind == Event::Kind::resize && on_device) {
      const auto old = live.extract(event.id);
      request(event, i);
      if (old) events.push_back({DeviceEvent::Kind::give_back, old.mapped().request, old.mapped().bytes, i});
    }
  }
  return events;
}

// Returns between two requests may come in any order: sorted, so that equal sets are equal lists.
void order_returns(std::vector<DeviceEvent>& events) {
  for (auto begin = events.begin(); begin != events.end();) {
    const auto is_return = [](const DeviceEvent& e) { return e.kind == DeviceEvent::Kind::give_back; };
    begin = std::find_if(begin, events.end(), is_return);
    const auto end = std::find_if_not(begin, events.end(), is_return);
    std::sort(begin, end, [](const DeviceEvent& a, const DeviceEvent& b) { return a.request < b.request; });
    begin = end;
  }
}

bool same(const DeviceEvent& a, const DeviceEvent& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == DeviceEvent::Kind::give_back) return a.request == b.request;
  return a.kind == DeviceEvent::Kind::phase || a.bytes == b.bytes;
}

std::string describe(const DeviceEvent& event, const std::vector<std::string>& context) {
  const std::string where = context.empty() ? "" : fmt::format(" in {}", fmt::join(context, " > "));
  switch (event.kind) {
    case DeviceEvent::Kind::request: return fmt::format("+ {}{}", event.bytes, where);
    case DeviceEvent::Kind::give_back: return fmt::format("- {}{}", event.bytes, where);
    case DeviceEvent::Kind::phase: return "the next phase";
  }
  return "";
}

// What is being run at a line of the log: the operators and nodes that have begun.
std::vector<std::string> context_of(const std::filesystem::path& log, size_t line) {
  std::vector<std::string> open;
  GzipLines lines(log.string());
  for (std::string_view text; lines.next(text) && static_cast<size_t>(lines.number()) < line;) {
    if (text.starts_with("> ")) open.emplace_back(text.substr(2));
    if (text.starts_with("<") && !open.empty()) open.pop_back();
  }
  return open;
}

std::vector<std::string> context_of(const Trace& trace, size_t index) {
  std::vector<std::string> open;
  for (size_t i = 0; i < index; ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Event::Kind::call) open.emplace_back(trace.text(trace.calls[event.id].op));
    if (event.kind == Event::Kind::node)
      open.push_back("evaluate " + std::string(trace.text(trace.nodes[event.id].name)));
    if (event.kind == Event::Kind::end && !open.empty()) open.pop_back();
  }
  return open;
}

}  // namespace

std::optional<EventMismatch> first_difference(const std::filesystem::path& log, const Trace& trace,
                                              DeviceType device) {
  const Recording recording = read_recording(log);
  std::vector<DeviceEvent> recorded = events_of(recording), ours = events_of(trace, device);
  order_returns(recorded);
  order_returns(ours);
  const auto [theirs, mine] = std::mismatch(recorded.begin(), recorded.end(), ours.begin(), ours.end(), same);
  if (theirs == recorded.end() && mine == ours.end()) return std::nullopt;
  // A run that ended because memory ran out stops there; the trace is of the whole step plan.
  if (theirs == recorded.end() && recording.phases.back().out_of_memory) return std::nullopt;
  EventMismatch mismatch{.line = theirs == recorded.end() ? 0 : static_cast<int64_t>(theirs->source),
                         .recorded = "the end",
                         .estimated = "the end"};
  if (theirs != recorded.end()) mismatch.recorded = describe(*theirs, context_of(log, theirs->source));
  if (mine != ours.end()) mismatch.estimated = describe(*mine, context_of(trace, mine->source));
  return mismatch;
}

}  // namespace metaprof
