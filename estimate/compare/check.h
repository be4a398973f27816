#pragma once
// Estimates against measurements, snapshots and earlier reports.

#include <optional>
#include <string>
#include <vector>

#include "estimate/parallel.h"
#include "estimate/prepare/model.h"
#include "estimate/results/check.h"
#include "estimate/results/profile.h"
#include "step/options.h"

namespace metaprof {

struct CheckOptions {
  std::string model;   ///< the .pt2 that was measured; empty: `models` has it
  std::string models;  ///< folder of exports, named as the measurements say
  RunOptions
      run;  ///< how the steps of a snapshot or a run were made: they do not say it; `framework` is taken for all
  bool workspaces_given =
      false;  ///< `run.workspaces` are taken for everything; else those that it was measured with
  std::vector<std::string> measurements, baselines;  ///< files
  double tolerance = 0.01;                           ///< share
};

/// Errors: the options contradict each other.
void check_options(const CheckOptions& options);

/// Errors: the options contradict each other; a file cannot be used, or is of another model.
CheckReport check(const CheckOptions& options, const OnProgress& progress = {});

/// What the engine does not repeat of the run that a captured program is of.
struct NotRepeated {
  std::string text;  ///< one line
  double error =
      0;  ///< of the peaks of allocated and reserved bytes the larger one, as a share; infinite: it cannot be run
};

/// Nothing: all of its phases are equal to the byte, reserved bytes, too. What the engine cannot run is no error.
std::optional<NotRepeated> not_repeated(const Model& captured);

/// A profile of the model with the options and the device of an earlier report, as `check` compares it with that. Errors: as check.
ProfileReport report_as_in_baseline(const std::string& baseline, const CheckOptions& options);

/// True if the file says itself how its steps were made: a recording or an earlier report, and no snapshot or report of a run.
bool says_how_it_was_run(const std::string& file);

}  // namespace metaprof
