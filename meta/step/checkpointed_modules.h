#pragma once
// Which calls of a program are computed again in backward, when modules are checkpointed by their paths.

#include <string>
#include <vector>

#include "meta/program/program.h"

namespace metaprof {

/// A region for each call of a module whose path matches one of the patterns (blanks between them): shell wildcards within the segments of a path, so that
/// "layers.*" is the layers, not what is inside them. Of modules inside each other the outermost counts.
/// Errors: no module matches.
std::vector<CheckpointRegion> checkpointed_modules(const Program& program, const std::string& patterns,
                                                   bool reentrant);

}  // namespace metaprof
