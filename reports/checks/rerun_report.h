#pragma once
// How the caching allocator's answers compare with recorded ones: what `metaprof allocator` shows.

#include <string>

#include "validation/results/rerun_result.h"

namespace metaprof {

/// A line for each difference, "FILE:LINE: WHAT: recorded A, got B", and one for the sum.
std::string rerun_text(const RerunResult& result);
/// {"schema": "metaprof.allocator_replay", "schema_version": 1, "recordings", "equal", "requests", "phases",
/// "phases_ended_early", "differences": [{"file", "line", "what", "expected", "got"}]}
std::string rerun_json(const RerunResult& result);

}  // namespace metaprof
