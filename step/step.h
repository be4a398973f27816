#pragma once
// A training step of a Program on a described device: what is run, and the Trace that comes of it.

#include "meta/platform/platform.h"
#include "meta/trace/trace.h"
#include "program/program.h"
#include "step/model_runner.h"
#include "step/options.h"

namespace metaprof {

/// Runs the step plan. `make_runner`: empty for the interpreter of programs, whatever `options.execution` says.
/// Errors: an optimizer that is not known; an operator's arguments do not fit (names operator and module); no loss in
/// a mode that needs one.
Trace run_steps(const Program& program, const Platform& platform, const StepOptions& options,
                const MakeModelRunner& make_runner = {});

}  // namespace metaprof
