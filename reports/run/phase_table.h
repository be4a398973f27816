#pragma once
// The rows of a run's phases, with those that repeat as one.

#include <string>
#include <vector>

#include "capture/launch/recording.h"

namespace metaprof {

/// Rows that follow each other in steps (or micro-batches) `first` to `last`, which are the same in each of them.
struct RepeatedPhase {
  const RunPhase* row = nullptr;  ///< of the first
  int64_t last_step = 0, last_micro = -1;
};

/// In their order. Two steps are the same if they have the same phases with the same bytes.
std::vector<RepeatedPhase> repeated_phases(const std::vector<RunPhase>& rows);

/// A table of at most `most` rows (0: of all), always with the first, the last, and that in which most is allocated; what is left out is said
/// below it.
std::string phase_table(const std::vector<RunPhase>& rows, size_t most);

}  // namespace metaprof
