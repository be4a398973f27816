#pragma once
// What helps a program that takes too much memory: changes that need no other model, tried by running it again.

#include <functional>

#include "capture/launch/run.h"

namespace metaprof {

/// Runs the program once more with each change that would do something, without its output; sets `report.fixes`, those that reserve least
/// first. If memory ran out, the program first runs on a device with room for all that it asks for: it says what it needs, which changes
/// apply to what it does later, and is captured (`TriedFixes::captured`). The changes then run with that room, too, and a second time on the
/// device itself where only its allocator can say whether they fit. If none does, those that help run together, and with a smaller batch.
/// `fits`: the verdict on a run. `tell`: called with the change before each run. A change with which the program ends in another way than
/// before is last, with the reason.
/// Errors: as of run_recorded.
void try_fixes(const LaunchOptions& options, RunReport& report,
               const std::function<bool(const RunReport&)>& fits,
               const std::function<void(const std::string&)>& tell);

/// Those that fit first, of them those that the program ran with, then by what they reserve; last what could not be tried.
void sort_fixes(std::vector<TriedFix>& rows);

/// How a user writes a change; `number`: that it is made with.
std::string text_of(const PossibleFix& fix, int64_t number = 0);

}  // namespace metaprof
