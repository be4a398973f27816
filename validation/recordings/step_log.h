#pragma once
// A recorded training step: X.json and X.log.gz beside it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "meta/allocator/snapshot.h"
#include "validation/recordings/head.h"
#include "validation/recordings/log_line.h"

namespace metaprof {

/// Requests of a recording, numbered from 0.
using AllocationNumber = uint32_t;

/// A line of the log that concerns the allocator, or begins a phase.
struct RecordedEvent {
  enum class Kind : uint8_t { request, give_back, completed, segment, out_of_memory, phase };
  Kind kind = Kind::request;
  SegmentEvent::Kind segment = SegmentEvent::Kind::allocate;  ///< of Kind::segment
  bool delayed = false;                                       ///< of a return: it is completed later
  uint32_t line = 0;
  StreamId stream = 0;              ///< in the order of appearance
  uint32_t pool = 0;                ///< index in Recording::pools
  AllocationNumber allocation = 0;  ///< of request, give_back and completed
  uint64_t address = 0;             ///< lower 40 bits
  uint64_t bytes = 0;  ///< of a request what is asked for, of a segment its size; of a phase its number
};

struct Recording {
  RecordingHead head;
  std::string log_path;
  std::vector<PoolId> pools;  ///< 0: the default pool
  std::vector<RecordedEvent> events;
  uint32_t allocations = 0;  ///< numbers of allocations are below
};

/// Reads X.log.gz (or X.log) and X.json beside it. Errors, with file and line: a file cannot be read, is damaged
/// or truncated; they contradict themselves or each other; the log is none of training steps.
Recording read_recording(const std::filesystem::path& log);

/// What is at work at a line of such a log.
AtWork at_work(const std::filesystem::path& log, int64_t line);

}  // namespace metaprof
