#pragma once
// Which calls of a program are computed again in backward, when modules are checkpointed by their paths.

#include <string>
#include <vector>

#include "program/program.h"
#include "step/eager/recompute_region.h"

namespace metaprof {

/// A region for each call of a module that the text names (step/checkpoint_text.h): shell wildcards within
/// the segments of a path, so that "layers.*" is the layers, not what is inside them. Of modules inside each
/// other the outermost counts, unless they are named in its braces. Errors: no module matches; the text is none.
std::vector<RecomputeRegion> checkpointed_modules(const Program& program, const std::string& text,
                                                  bool reentrant);

}  // namespace metaprof
