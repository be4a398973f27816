#pragma once
// Runs that may have their forward and backward in common: what of a run's options decides how the model is
// dispatched, and what decides only which optimizer updates it, what the allocator has, and which device is asked.

#include <string>
#include <vector>

#include "step/optimizers_in_turn.h"
#include "step/options.h"

namespace metaprof {

struct RunGroup {
  std::vector<size_t> runs;                 ///< indices, in order
  std::vector<OptimizerChoice> optimizers;  ///< of these runs, without repetition
};

/// The inputs that a run asks for, as one text.
std::string inputs_asked_by(const RunOptions& run);

/// The options that decide what is dispatched, as one text.
std::string options_of_dispatch(const RunOptions& run);

/// Every run is in one group. Groups of the same inputs stand beside each other.
std::vector<RunGroup> group_runs(const std::vector<RunOptions>& runs);

}  // namespace metaprof
