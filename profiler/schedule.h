#pragma once
// A run laid out in time: what was at work when, and the live bytes. The clock is that of an ideal device:
// every operator takes the longer of moving its bytes and computing its FLOPs, and every event at least a
// nanosecond, so that their order can be seen. It is no prediction of how long the framework's own code
// takes.

#include <string>
#include <vector>

#include "opcount/counts.h"
#include "profiler/storages/cursor.h"
#include "profiler/storages/live_storages.h"

namespace metaprof {

struct Slice {
  enum class Kind : uint8_t { phase, module, op, node };
  Kind kind = Kind::op;
  Phase phase = Phase::setup;
  uint32_t name = 0;           ///< index into Schedule::names
  uint32_t module = 0;         ///< the same
  uint32_t step = 0;           ///< of a phase
  int64_t begin = 0, end = 0;  ///< nanoseconds
  Flops flops;
  Bytes moved;
};

/// A part of the step plan, as events of the trace.
struct PhaseSpan {
  StepPart part;
  uint32_t begin = 0, end = 0;
};

/// Live bytes after an event that changed them, and what was at work.
struct Moment {
  int64_t at = 0;  ///< nanoseconds
  uint32_t event = 0;
  uint32_t op = 0, module = 0;  ///< indices into Schedule::names
  BytesByCategory by_category;
};

struct Schedule {
  std::vector<std::string> names;  ///< [0] is empty
  std::vector<Slice> slices;       ///< by beginning, those around before those inside
  std::vector<Moment> moments;
  std::vector<PhaseSpan> phases;
  int64_t end = 0;  ///< nanoseconds
};

Schedule schedule(const Trace& trace, Device device, const Rates& rates);

}  // namespace metaprof
