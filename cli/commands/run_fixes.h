#pragma once
// metaprof run --fixes: what helps a program that takes too much memory.

#include <functional>

#include "capture/launch/run.h"

namespace metaprof {

/// Sets `report.fixes`: changes that the program was run with, and those that its captured steps were, where memory ran out. Says on
/// stderr what is run. `fits`: the verdict on a run. `context`: as --context has it.
/// Errors: as of run_recorded.
void try_all_fixes(const LaunchOptions& options, const std::string& context, RunReport& report,
                   const std::function<bool(const RunReport&)>& fits);

}  // namespace metaprof
