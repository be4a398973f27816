#pragma once
// Plans of recomputation with which a step fits in what a device's allocator can have: not only what is allocated
// counts, but what is reserved for it, too.

#include <functional>
#include <optional>

#include "estimate/plan/plan_search.h"
#include "estimate/prepare/model.h"

namespace metaprof {

struct FittingPlan {
  std::vector<std::string> words;  ///< of --checkpoint; empty: nothing has to be computed again
  double recomputed = 0;           ///< FLOPs computed again, as a share of the step's without
};

/// FLOPs that a step computes again with these words as --checkpoint, as a share of the step's without.
double recomputed_share(const Model& model, const RunOptions& run, const std::vector<std::string>& words);

/// Whether the step fits with these words as --checkpoint.
using FitsWith = std::function<bool(const std::vector<std::string>& words)>;

/// The cheapest plan that one of these strategies finds; nothing: none fits. A plan whose allocated bytes stay within
/// the memory and that does not fit all the same is looked for again with less. Errors: as StepRunner.
std::optional<FittingPlan> fitting_plan(const Model& model, const RunOptions& run,
                                        const std::vector<std::string>& strategies, Bytes memory,
                                        const FitsWith& fits);

}  // namespace metaprof
