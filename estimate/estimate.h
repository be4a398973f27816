#pragma once
// A model, on a device, with options, to what its steps cost: prepare (estimate/prepare/prepare.h), run
// (estimate/model_run.h), read (estimate/read.h). Reports are written from the result (reports/report_forms.h). Nothing here
// prints: what a reader should know besides the figures comes back as notes.

#include "estimate/model_run.h"
#include "estimate/prepare/model.h"
#include "estimate/prepare/workspace_planners.h"
#include "estimate/read.h"
#include "step/options.h"

namespace metaprof {

/// Runs the steps and reads everything from them. `compiled` runs the model under `--execution graph`; null: one is
/// made. Of a model with torch.cond both ways are
/// run, of one with while_loop one trip and two, unless the options choose. Errors: as prepare and run.
Estimate estimate(const Model& model, const RunOptions& options, WorkspacePlanners& planners,
                  CompiledModel* compiled = nullptr, StepsToRun steps = StepsToRun::all);
Estimate estimate(const Model& model, const RunOptions& options, StepsToRun steps = StepsToRun::all);

/// What is compared of runs of one model.
ExecutionFigures execution_figures(const ProfileReport& report);

/// The same on a device that is here: `hardware` in place of --device, of whose memory the allocator can have `available`.
/// All steps are dispatched.
Estimate estimate_on(const Model& model, const RunOptions& options, const Hardware& hardware,
                     Bytes available);

}  // namespace metaprof
