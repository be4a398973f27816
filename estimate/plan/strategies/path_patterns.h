#pragma once
// Module paths in few words: the patterns of --checkpoint.

#include <string>
#include <vector>

namespace metaprof {

/// Patterns with shell wildcards within the segments of a path that match all of `chosen` and no other of `all`:
/// numbered modules are written together ("layers.*", "layers.[0-7]", "layers.1[0-5]"), others by themselves.
std::vector<std::string> path_patterns(const std::vector<std::string>& chosen,
                                       const std::vector<std::string>& all);

}  // namespace metaprof
