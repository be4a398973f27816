#pragma once
// Runs that have their forward and backward in common: what of a run's options decides how the model is dispatched,
// and what decides only which optimizer updates it and what the allocator has.

#include <string>
#include <vector>

#include "meta/step/optimizers_in_turn.h"
#include "meta/step/options.h"

namespace metaprof {

struct RunGroup {
  std::vector<size_t> runs;                 ///< indices, in order
  std::vector<size_t> optimizer;            ///< of each: index into `optimizers`
  std::vector<OptimizerChoice> optimizers;  ///< without repetition
};

/// The inputs that a run asks for, as one text.
std::string inputs_asked_by(const RunOptions& run);

/// Every run is in one group. Groups of the same inputs stand beside each other.
std::vector<RunGroup> group_runs(const std::vector<RunOptions>& runs);

}  // namespace metaprof
