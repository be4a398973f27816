#pragma once
// The third stage of an estimate: what a run cost, read from its events.

#include <vector>

#include "estimate/model_run.h"
#include "estimate/prepare/prepare.h"
#include "estimate/results/profile.h"
#include "meta/trace/trace.h"
#include "step/options.h"

namespace metaprof {

struct Estimate {
  Platform platform;
  RunOptions options;
  Trace trace;                    ///< everything that the run did
  ProfileReport report;           ///< and what it cost: all steps, whichever were dispatched
  int repeated = 0;               ///< steps that are not in the trace: as its last one
  PlainVector<Event> fused = {};  ///< as in ModelRun
};

/// Runs nothing.
Estimate read(const PreparedRun& prepared, ModelRun run);

}  // namespace metaprof
