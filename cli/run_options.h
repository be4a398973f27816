#pragma once
// The options of a run on the command line, made from the one table of them.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "estimate/grid.h"
#include "meta/step/options.h"

namespace metaprof {

/// All of them, with one value each.
void add_run_options(CLI::App& command, RunOptions& options);
/// The same, where each may have a list of values.
void add_grid_options(CLI::App& command, Grid& grid);

/// MODEL, the command's first word.
CLI::Option* add_model(CLI::App& command, std::string& model, const std::string& what);
/// --json
void add_json(CLI::App& command, std::string& file, const std::string& in_place_of = "the text");

bool was_given(const CLI::App& command, std::string_view option);
/// Errors: an option of the step or of the inputs was given.
void refuse_step_options(const CLI::App& command, std::string_view why);

}  // namespace metaprof
