#include "validation/steps/captured.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "meta/trace/text.h"
#include "validation/comparison/memory_events.h"
#include "validation/steps/statistics.h"

namespace metaprof {
namespace {

RecordedPhase recorded(const Capture::Measured& measured) {
  RecordedPhase row;
  row.name = fmt::format("{} step {}", measured.phase, measured.step);
  if (const auto phase = phase_named(measured.phase))
    row.part = StepPart{*phase, static_cast<uint32_t>(measured.step), measured.micro};
  for (const auto& [name, member] : kStatistics) {
    row.numbers.emplace_back(StatisticField::find(fmt::format("{}.all.current", name)),
                             (measured.numbers.*member).current);
    row.numbers.emplace_back(StatisticField::find(fmt::format("{}.all.peak", name)),
                             (measured.numbers.*member).peak);
  }
  return row;
}

// Requests are numbered from 1. Those that return what was never asked for are no events of a run.
std::vector<MemoryEvent> events_of(const Capture& capture) {
  using Kind = MemoryEvent::Kind;
  std::vector<MemoryEvent> events;
  std::vector<int64_t> bytes;
  for (const Capture::Measured& measured : capture.measured) {
    events.push_back({.kind = Kind::phase, .source = events.size()});
    for (const int64_t request : measured.requests) {
      const auto count = static_cast<int64_t>(bytes.size());
      if (request > 0) {
        bytes.push_back(request);
        events.push_back({Kind::request, count + 1, request, events.size()});
      } else if (request < 0 && request >= -count) {
        const int64_t storage = count + 1 + request;
        events.push_back({Kind::give_back, storage, bytes[size_t(storage - 1)], events.size()});
      }
    }
  }
  return events;
}

}  // namespace

Measurement measurement_of(const Program& program) {
  if (!program.captured || program.captured->measured.empty())
    fail("{}: has no measurement of its own: name one with --against", program.origin);
  Measurement measurement;
  measurement.id = measurement.model = program.name;
  measurement.head.path = program.origin;
  measurement.head.framework = parse_framework_version(program.captured->torch);
  for (const Capture::Measured& measured : program.captured->measured) {
    if (measured.step < 0 || measured.step > UINT32_MAX)
      fail("{}: {} is no step", program.origin, measured.step);
    measurement.head.phases.push_back(recorded(measured));
    if (!measurement.head.phases.back().part) measurement.head.phases.pop_back();
  }
  return measurement;
}

std::optional<EventMismatch> first_difference(const Capture& capture, const Trace& trace, Device device) {
  const std::vector<MemoryEvent> run = events_of(capture),
                                 ours = traced_events(trace, 0, trace.events.size(), device);
  StorageMap known;
  const auto difference = compare_events(run, ours, known);
  if (!difference) return std::nullopt;
  EventMismatch mismatch{
      .line = static_cast<int64_t>(difference->recorded) + 1, .recorded = "the end", .estimated = "the end"};
  if (difference->recorded != run.size()) mismatch.recorded = show(run[difference->recorded], AtWork());
  if (difference->ours != ours.size())
    mismatch.estimated = show(ours[difference->ours], at_work(trace, 0, ours[difference->ours].source));
  return mismatch;
}

}  // namespace metaprof
