#pragma once
// Requests and returns of device memory in their order: those of a recording, and those of a trace.

#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "meta/trace/trace.h"
#include "validation/comparison/storage_map.h"
#include "validation/recordings/log_line.h"

namespace metaprof {

struct MemoryEvent {
  enum class Kind : uint8_t { request, give_back, phase };
  Kind kind = Kind::request;
  int64_t storage = 0;  ///< the recording's number, or the trace's
  int64_t bytes = 0;    ///< as asked for
  size_t source = 0;    ///< index of the line, or of the trace's event
};

/// Events [from, to) of the trace that concern memory of this device, and the beginnings of phases; births of
/// `hidden` storages are left out, and storages without bytes.
std::vector<MemoryEvent> traced_events(const Trace& trace, size_t from, size_t to, Device device,
                                       const std::unordered_set<uint32_t>& hidden = {});

/// Sum of all requests.
int64_t requested_bytes(std::span<const MemoryEvent> events);

/// The first difference: indices into both lists (one may be the end).
struct EventDifference {
  size_t recorded = 0, ours = 0;
};
/// Requests must agree in order and bytes; returns that follow each other are compared as sets. Storages that
/// are born here are matched by their order; `known` tells about older ones. `prefix`: ours may go on where the
/// recording ends.
std::optional<EventDifference> compare_events(std::span<const MemoryEvent> recorded,
                                              std::span<const MemoryEvent> ours, StorageMap& known,
                                              bool prefix = false);

/// What is at work at an event of the trace, of what began from event `from` on.
AtWork at_work(const Trace& trace, size_t from, size_t event);

}  // namespace metaprof
