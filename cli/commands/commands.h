#pragma once
// The commands of the program: each file adds one, with its options, to the command line.

#include "cli/line/command_line.h"

namespace metaprof {

/// What the program says by its exit status.
enum ExitCode : int {
  kFine = 0,
  kFinding = 1,  ///< does not fit, a check failed, cases differ
  kBadInput = 2  ///< bad usage or input; the message on stderr says what, where, and what to do
};

/// Each adds its command.
void add_profile_command(CommandLine& line);
void add_ops_command(CommandLine& line);
void add_explain_command(CommandLine& line);
void add_allocator_command(CommandLine& line);
void add_check_command(CommandLine& line);
void add_rent_command(CommandLine& line);
void add_fit_command(CommandLine& line);
void add_diff_command(CommandLine& line);
void add_together_command(CommandLine& line);
void add_sweep_command(CommandLine& line);
void add_plan_input_command(CommandLine& line);
void add_run_command(CommandLine& line);
void add_selftest_command(CommandLine& line);
void add_cudagraphs_command(CommandLine& line);
void add_graph_command(CommandLine& line);
void add_advise_command(CommandLine& line);
void add_plan_command(CommandLine& line);
void add_devices_command(CommandLine& line);
void add_frameworks_command(CommandLine& line);
void add_schema_command(CommandLine& line);
void add_inspect_command(CommandLine& line);
void add_models_command(CommandLine& line);
void add_replay_command(CommandLine& line);
void add_measure_command(CommandLine& line);

}  // namespace metaprof
