#pragma once
// What steps cost for every combination of some options.

#include "estimate/epoch/batches.h"
#include "estimate/parallel.h"
#include "estimate/prepare/model.h"
#include "estimate/results/search/grid.h"
#include "estimate/search/grid.h"

namespace metaprof {

/// A row for each combination of the grid that is in the shard; one that cannot be run has an error in its row. Columns are
/// those of the whole grid. `epoch`: that each combination runs; memory is then of all its steps, and FLOPs of the batch with
/// the most tokens. Errors: the grid is too large.
SweepReport sweep(const Model& model, const Grid& grid, const EpochOptions& epoch = {},
                  const Shard& shard = {}, const OnProgress& progress = {});

}  // namespace metaprof
