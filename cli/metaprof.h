#pragma once
// The program `metaprof`. Data goes to stdout, messages to stderr.

#include <CLI/CLI.hpp>

namespace metaprof {

/// What the program says by its exit status.
enum ExitCode : int {
  kFine = 0,
  kFinding = 1,  ///< does not fit, a check failed, cases differ
  kBadInput = 2  ///< bad usage or input; the message on stderr says what, where, and what to do
};

int run_metaprof(int count, char** words);

/// Each adds its subcommand, which sets the exit code when it is run.
void add_profile_command(CLI::App& app, int& exit_code);
void add_ops_command(CLI::App& app, int& exit_code);
void add_allocator_command(CLI::App& app, int& exit_code);
void add_check_command(CLI::App& app, int& exit_code);
void add_fit_command(CLI::App& app, int& exit_code);
void add_diff_command(CLI::App& app, int& exit_code);
void add_sweep_command(CLI::App& app, int& exit_code);
void add_plan_input_command(CLI::App& app, int& exit_code);
void add_run_command(CLI::App& app, int& exit_code);
void add_advise_command(CLI::App& app, int& exit_code);
void add_devices_command(CLI::App& app, int& exit_code);

}  // namespace metaprof
