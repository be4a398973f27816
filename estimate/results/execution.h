#pragma once
// One training step run in two ways: the figures that are compared.

#include <string>

#include "core/units.h"

namespace metaprof {

struct ExecutionFigures {
  Bytes peak;           ///< the most that is allocated at a time, in the whole run
  Bytes saved;          ///< kept for backward when the first forward ends (profiler/storages/saved.h)
  Flops flops;          ///< of the first step, all operators
  int64_t kernels = 0;  ///< of the first step (opcount/counts.h)
};

struct ExecutionComparison {
  ExecutionFigures eager, graph;
};

/// What follows from data: both functions of the model's torch.cond calls.
struct BranchComparison {
  ExecutionFigures when_true, when_false;
  bool shown = true;  ///< the condition of the run that the report is of: the one with the higher peak
};

}  // namespace metaprof
/// What follows from data: how often while_loop runs its body. The report is of one trip.
struct LoopComparison {
  ExecutionFigures one_trip, two_trips;
};

