#pragma once
// What helps a step to fit: each switch that PyTorch has, run, and the fewest of them that fit together.

#include "estimate/estimate.h"
#include "estimate/prepare/model.h"
#include "estimate/results/advice.h"

namespace metaprof {

/// Switches that the model or the device does not take are left out. Errors: as run_steps with `options`; a
/// trace has no switches.
AdviceReport advise(const Model& model, const RunOptions& options);

/// The same without `rows`: only what `best` needs is run, in a part of the time. `as_it_is`: the estimate with these
/// options, whose memory ran out.
AdviceReport find_fix(const Model& model, const RunOptions& options, const Estimate& as_it_is);

}  // namespace metaprof
