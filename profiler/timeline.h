#pragma once
// Live bytes over the events of a trace, and what was alive when they were most. Time is logical: the index
// of an event. Bytes are what was asked for, of one device.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "profiler/storages/cursor.h"
#include "profiler/storages/large_storage.h"
#include "profiler/storages/live_storages.h"

namespace metaprof {

/// Live bytes after an event that changed them.
struct Sample {
  uint32_t event = 0;
  BytesByCategory by_category;
};
std::vector<Sample> timeline(const Trace& trace, Device device);

/// The moment with the most live bytes; the first of several.
struct PeakMoment {
  uint32_t event = 0;
  StepPart part;
  std::string op, module;  ///< at work then; may be empty
  Bytes bytes;
  BytesByCategory by_category;        ///< sums to `bytes`
  std::vector<LargeStorage> largest;  ///< alive then, the largest first

  /// Those that a report lists.
  std::span<const LargeStorage> listed() const {
    return std::span(largest).first(std::min<size_t>(largest.size(), 10));
  }
};
/// Events from `end` on do not count: there memory ran out.
PeakMoment peak_moment(const Trace& trace, Device device, size_t end = SIZE_MAX);

}  // namespace metaprof
