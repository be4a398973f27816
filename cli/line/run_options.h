#pragma once
// The options of a run on the command line, made from the one table of them.

#include <string>
#include <string_view>

#include "cli/line/command_line.h"
#include "estimate/epoch/batches.h"
#include "estimate/search/grid.h"
#include "step/options.h"

namespace metaprof {

/// All of them, with one value each.
void add_run_options(Command& command, RunOptions& options);
/// The same, where each may have a list of values.
void add_grid_options(Command& command, Grid& grid);

/// --lengths and what belongs to it.
void add_epoch_options(Command& command, EpochOptions& options);
/// Errors: one of these was given without --lengths; --steps was given with it.
void check_epoch_options(const Command& command, const EpochOptions& options);

/// Options that are not given are taken from the environment: METAPROF_DEVICE, METAPROF_PRECISION …
void take_environment(Command& command);

/// MODEL, the command's first word, and --interpreter.
AddedOption add_model(Command& command, std::string& model, const std::string& what);
/// --json
void add_json(Command& command, std::string& file, const std::string& in_place_of = "the text");

/// --width: of tables; `width` begins as the terminal's.
void add_width(Command& command, int64_t& width);

/// --color: of the text; `when` begins as "auto".
void add_color(Command& command, std::string& when);

/// Errors: an option of the step or of the inputs was given.
void refuse_step_options(const Command& command, std::string_view why);

}  // namespace metaprof
