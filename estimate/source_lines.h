#pragma once
// The lines of the user's source at which a model's calls were made, from the stack traces that an export carries.

#include "meta/program/program.h"
#include "reports/culprits.h"

namespace metaprof {

/// Of each call the deepest line that is not the framework's: a file outside of a folder "torch".
SourceLines source_lines(const Program& program);

}  // namespace metaprof
