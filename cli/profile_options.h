#pragma once
// The options of `metaprof profile`: the words of recorded configurations, and those of the report.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/report_files.h"
#include "meta/step/step.h"
#include "reports/profile_report.h"

namespace metaprof {

struct ProfileOptions {
  std::string model;
  StepOptions step;
  std::string device = "h200";
  std::string memory, alloc_conf, workspaces = "none";
  std::optional<int> batch, sequence;
  std::vector<std::string> environment;  ///< of --env
  std::vector<std::string> settings;     ///< of --set
  std::string write_trace;
  ReportFiles files;
  TextOptions text;
};

/// MODEL, the step, the device and the inputs: what every command has that runs a model.
void add_run_options(CLI::App& command, ProfileOptions& options);
/// These, and those of the report.
void add_profile_options(CLI::App& command, ProfileOptions& options);

/// Errors: an option of the step plan was given.
void refuse_step_options(const CLI::App& command, std::string_view why);

/// The options that decide the result, for the report.
std::vector<std::pair<std::string, OptionValue>> option_values(const ProfileOptions& options);

}  // namespace metaprof
