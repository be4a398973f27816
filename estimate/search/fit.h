#pragma once
// The largest batch, or the longest sequence, of which a step fits.

#include "estimate/epoch/batches.h"
#include "estimate/parallel.h"
#include "estimate/prepare/model.h"
#include "estimate/results/search/grid.h"
#include "estimate/search/grid.h"

namespace metaprof {

struct FitOptions {
  Grid grid;
  std::string dimension = "batch";  ///< or "sequence"; of an epoch also "tokens" in a batch
  EpochOptions epoch = {};          ///< with which each size is run; none: one batch of the size
  bool plan = false;  ///< each size with the best plan of recomputation: docs/how_to/planning.md
};

/// Errors: the options contradict each other.
void check_fit_options(const FitOptions& options);

/// A row for each combination of the grid. Errors: the options contradict each other; as run_steps.
FitReport fit(const Model& model, const FitOptions& options, const OnProgress& progress = {});

}  // namespace metaprof
