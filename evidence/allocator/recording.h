#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/alloc_conf.h"
#include "allocator/snapshot.h"
#include "allocator/statistics.h"

namespace metaprof {

// Requests of a recording, numbered from 0.
using AllocationNumber = std::uint32_t;

// One line of a recording's log that concerns the allocator.
struct RecordedEvent {
  enum class Kind : std::uint8_t { malloc, free, free_completed, segment, out_of_memory, phase };
  Kind kind = Kind::malloc;
  SegmentEvent::Kind segment = SegmentEvent::Kind::allocate;  // of Kind::segment
  bool delayed = false;  // of Kind::free: a free_completed of the same block follows
  std::uint32_t line = 0;
  StreamId stream = 0;              // in the order of appearance
  std::uint32_t pool = 0;           // index in Recording::pools
  AllocationNumber allocation = 0;  // of malloc, free and free_completed
  std::uint64_t address = 0;        // lower 40 bits
  std::uint64_t bytes = 0;  // of malloc what is asked for, of segments their size; of phase its number
};

// The allocator's statistics at the end of a phase.
struct RecordedPhase {
  std::string name;  // as the log marks it: "forward step 0 micro 1"
  std::vector<std::pair<const StatisticField*, std::uint64_t>> numbers;
  std::optional<std::string> out_of_memory;  // the error that ended it
};

// A recorded training step: its log and what the .json beside it says.
struct Recording {
  std::string log_path;
  AllocConf conf;
  std::uint64_t device_memory = 0;  // bytes
  std::vector<PoolId> pools;        // 0: the default pool
  std::vector<RecordedEvent> events;
  std::uint32_t allocations = 0;  // numbers of allocations are below
  std::vector<RecordedPhase> phases;
};

// Reads X.log.gz (or X.log) and X.json beside it. Throws Error, naming file and line, for files that cannot
// be read, are damaged or truncated, contradict themselves or each other, or hold no recording of a model.
Recording read_recording(const std::filesystem::path& log);

}  // namespace metaprof
