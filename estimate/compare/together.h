#pragma once
// Whether several processes fit one card beside each other.

#include <string>
#include <vector>

#include "estimate/results/search/together.h"
#include "step/options.h"

namespace metaprof {

/// `files`: what `metaprof profile --json` and `metaprof run --json` wrote; of a run with several ranks the one that takes the
/// most. `options`: --device, or else that of the first report; --memory, --context and --margin. Errors: a file is none of
/// these; its figures end where memory ran out; no such device.
TogetherReport together(const std::vector<std::string>& files, const RunOptions& options);

}  // namespace metaprof
