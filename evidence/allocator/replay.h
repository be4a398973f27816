#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "evidence/allocator/recording.h"

namespace metaprof {

struct ReplayDifference {
  std::string file;
  std::size_t line = 0;  // of the log
  std::string what;      // "address", "segment", "out of memory", or the name of a statistic
  std::string expected;  // as recorded
  std::string got;       // from the allocator
};

struct ReplayResult {
  std::size_t recordings = 0;
  std::size_t equal = 0;
  std::uint64_t requests = 0;  // of all recordings together
  std::uint64_t phases = 0;
  std::uint64_t phases_ended_early = 0;  // followed by events that belong to no phase
  std::vector<ReplayDifference> differences;

  bool all_equal() const { return equal == recordings; }
};

// Differences of one recording after which its replay ends: one is enough to make all that follows differ.
inline constexpr std::size_t kMostDifferences = 20;

// Drives the caching allocator with a recording's requests and frees on a device with the recorded memory and
// compares the address of every block, every segment that comes and goes and every statistic of every phase.
//
// What the log does not say is taken from what follows in it: a returned block waits for other streams iff a
// `c` line says later that it became free; memory that goes back to the device although no request needs it
// was released by the program (torch.cuda.empty_cache); a private pool whose memory goes back is no longer
// used; a failed request was made where the recorded lines follow from it. What the program does between two
// phases stands in the log before the next one begins, so that a phase (but not the last) may end at an
// earlier event, where all its statistics are the recorded ones. Segments that go back in one go are compared
// as a set: their order follows the handles of streams, which the log does not have.
void replay_recording(const Recording& recording, ReplayResult& result);

// Reads and replays each log. Throws Error for a recording that cannot be read.
ReplayResult replay_recordings(const std::vector<std::string>& logs);

}  // namespace metaprof
