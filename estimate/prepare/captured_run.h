#pragma once
// Where a captured program is run, if nobody asks for anything else: there where it was captured.

#include "program/program.h"
#include "step/options.h"

namespace metaprof {

/// The options, with those of the run that the program was captured from where nothing was asked for: the device with
/// the memory that it had, the allocator's settings, variables of the environment (--env and --alloc-conf outrank
/// them), workspaces. Other programs: as they are. Errors: the run's device is not known here.
RunOptions as_captured(RunOptions options, const Program& program);

/// The options that a report shows for a run: of a module those that were asked for, since its capture has taken some; of
/// others as_captured.
RunOptions shown_as(const RunOptions& asked, const Program& program);

/// Options of the device that are the run's own and not asked for, in the order in which reports show them; none for
/// other programs.
std::vector<std::string> options_of_run(const RunOptions& asked, const Program& program);

}  // namespace metaprof
