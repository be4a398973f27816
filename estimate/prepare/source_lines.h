#pragma once
// The lines of the user's source at which a model's calls were made, from the stack traces that an export carries.

#include <optional>
#include <string>

#include "estimate/results/peak_contributors.h"
#include "program/program.h"

namespace metaprof {

/// Of each call the deepest line that is not the framework's: a file outside of a folder "torch".
SourceLines source_lines(const Program& program);

/// The first such line of a module's calls, or of those inside of it, with the file as the export names it, or from
/// here on where the end of that path is a file here. Null: there is none.
std::optional<SourceLine> users_line_of(const Program& program, const std::string& module);

}  // namespace metaprof
