#pragma once
// How the caching allocator's answers compare with recorded ones: what `metaprof allocator` shows.

#include <string>

#include "evidence/allocator/replay.h"

namespace metaprof {

/// A line for each difference, "FILE:LINE: WHAT: recorded A, got B", and one for the sum.
std::string allocator_replay_text(const ReplayResult& result);
/// {"schema": "metaprof.allocator_replay", "schema_version": 1, "recordings", "equal", "requests", "phases",
/// "phases_ended_early", "differences": [{"file", "line", "what", "expected", "got"}]}
std::string allocator_replay_json(const ReplayResult& result);

}  // namespace metaprof
