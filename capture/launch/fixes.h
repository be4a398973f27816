#pragma once
// What helps a program that takes too much memory: changes that need no other model, tried by running it again.

#include <functional>

#include "capture/launch/run.h"

namespace metaprof {

/// Runs the program once more with each change that would do something, without its output; sets `report.fixes`, those that reserve least
/// first. `fits`: the verdict on a run. `tell`: called with the change before each run. A change with which the program ends in another way than
/// before is last, with the reason.
/// Errors: as of run_recorded.
void try_fixes(const LaunchOptions& options, RunReport& report,
               const std::function<bool(const RunReport&)>& fits,
               const std::function<void(const std::string&)>& tell);

/// How a user writes the change of this name.
std::string change_of(const std::string& name);

}  // namespace metaprof
