// The first event in which the log of a recording and a trace differ.

#include <fmt/format.h>

#include "validation/comparison/memory_events.h"
#include "validation/recordings/step_log.h"
#include "validation/steps/check.h"
#include "validation/steps/statistics.h"

namespace metaprof {
namespace {

// Blocks are numbered from 1 by the requests for them.
std::vector<MemoryEvent> recorded_events(const Recording& recording) {
  using From = RecordedEvent::Kind;
  std::vector<MemoryEvent> events;
  std::vector<int64_t> bytes(recording.allocations);
  for (const RecordedEvent& event : recording.events) {
    if (event.kind == From::phase) events.push_back({.kind = MemoryEvent::Kind::phase, .source = event.line});
    if (event.kind != From::request && event.kind != From::give_back) continue;
    const bool request = event.kind == From::request;
    if (request) bytes[event.allocation] = static_cast<int64_t>(event.bytes);
    events.push_back({request ? MemoryEvent::Kind::request : MemoryEvent::Kind::give_back,
                      int64_t{event.allocation} + 1, bytes[event.allocation], event.line});
  }
  return events;
}

}  // namespace

std::optional<EventMismatch> first_difference(const std::filesystem::path& log, const Trace& trace,
                                              Device device) {
  const Recording recording = read_recording(log);
  const std::vector<MemoryEvent> recorded = recorded_events(recording),
                                 ours = traced_events(trace, 0, trace.events.size(), device);
  StorageMap known;
  // A run's log ends with the steps of which every request was kept.
  const auto difference = compare_events(recorded, ours, known, recording.head.kind != HeadKind::recording);
  if (!difference) return std::nullopt;
  const bool at_end = difference->recorded == recorded.size();
  // A run that ended because memory ran out stops there; the trace is of the whole step plan.
  if (at_end && recording.head.phases.back().out_of_memory) return std::nullopt;
  EventMismatch mismatch{.line = 0, .recorded = "the end", .estimated = "the end"};
  if (!at_end) {
    const MemoryEvent& event = recorded[difference->recorded];
    mismatch.line = static_cast<int64_t>(event.source);
    mismatch.recorded = show(event, at_work(log, mismatch.line));
  }
  if (difference->ours != ours.size()) {
    const MemoryEvent& event = ours[difference->ours];
    mismatch.estimated = show(event, at_work(trace, 0, event.source));
  }
  return mismatch;
}

std::optional<EventMismatch> first_difference(const std::filesystem::path& log,
                                              const std::filesystem::path& other) {
  const Recording first = read_recording(log), second = read_recording(other);
  const std::vector<MemoryEvent> events = recorded_events(first), others = recorded_events(second);
  StorageMap known;
  const auto difference = compare_events(events, others, known);
  if (!difference) return std::nullopt;
  EventMismatch mismatch{.line = 0, .recorded = "the end", .estimated = "the end"};
  if (difference->recorded != events.size()) {
    const MemoryEvent& event = events[difference->recorded];
    mismatch.line = static_cast<int64_t>(event.source);
    mismatch.recorded = show(event, at_work(log, mismatch.line));
  }
  if (difference->ours != others.size()) {
    const MemoryEvent& event = others[difference->ours];
    mismatch.estimated = show(event, at_work(other, static_cast<int64_t>(event.source)));
  }
  return mismatch;
}

}  // namespace metaprof
