#pragma once
// What both comparisons of a step look at, with a recording and with the run that a program was captured from.

#include <fmt/format.h>

#include <string>

#include "meta/allocator/device_allocator.h"
#include "validation/comparison/memory_events.h"
#include "validation/recordings/log_line.h"

namespace metaprof {

/// A statistic of the allocator that is compared in every phase, by the name that it has in JSON.
struct ComparedStatistic {
  const char* name;
  AllocatorNumber AllocatorNumbers::*number;
};
inline constexpr ComparedStatistic kStatistics[] = {
    {"allocated_bytes", &AllocatorNumbers::allocated_bytes},
    {"requested_bytes", &AllocatorNumbers::requested_bytes},
    {"active_bytes", &AllocatorNumbers::active_bytes},
    {"reserved_bytes", &AllocatorNumbers::reserved_bytes},
    {"inactive_split_bytes", &AllocatorNumbers::inactive_split_bytes},
    {"allocation", &AllocatorNumbers::allocation},
    {"segment", &AllocatorNumbers::segment}};

/// "+ 4096 in mm of layers.0": an event of memory and what was at work.
inline std::string show(const MemoryEvent& event, const AtWork& at_work) {
  switch (event.kind) {
    case MemoryEvent::Kind::request: return fmt::format("+ {}{}", event.bytes, at_work.text());
    case MemoryEvent::Kind::give_back: return fmt::format("- {}{}", event.bytes, at_work.text());
    case MemoryEvent::Kind::phase: return "the next phase";
  }
  return "";
}

}  // namespace metaprof
