#pragma once
// Allocations and frees of device memory: those of a recording and those of a replay, compared in order.

#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "evidence/op_log.h"
#include "evidence/storage_map.h"
#include "meta/trace/trace.h"

namespace metaprof {

struct MemoryEvent {
  bool allocation = false;
  int64_t storage = 0;  ///< the recording's number, or the trace's
  int64_t bytes = 0;    ///< as asked for
  size_t source = 0;    ///< index of the line, or of the trace's event
};

std::vector<MemoryEvent> recorded_events(std::span<const RecordedLine> lines);
/// Events [from, to) of the trace that concern device memory; births of `hidden` storages are left out.
std::vector<MemoryEvent> traced_events(const Trace& trace, size_t from, size_t to,
                                       const std::unordered_set<uint32_t>& hidden);

/// Sum of all requests.
int64_t requested_bytes(std::span<const MemoryEvent> events);

/// The first difference: indices into both lists (one may be the end).
struct EventDifference {
  size_t recorded = 0, ours = 0;
};
/// Requests must agree in order and bytes; frees that follow each other are compared as sets. Storages that
/// are born here are matched by their order; `known` tells about older ones. `prefix`: the replay may go on
/// where the recording ends.
std::optional<EventDifference> compare_events(std::span<const MemoryEvent> recorded,
                                              std::span<const MemoryEvent> ours, StorageMap& known,
                                              bool prefix);

/// "+ 25165824 in aten::linear > aten::addmm": what happens at an index and where; "the end" behind the last.
std::string show_event(std::span<const MemoryEvent> events, size_t index,
                       std::span<const RecordedLine> lines);
std::string show_event(std::span<const MemoryEvent> events, size_t index, const Trace& trace, size_t from,
                       const StorageMap& known);

}  // namespace metaprof
