#pragma once
// What comes of repeating recorded requests with the model of the caching allocator.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace metaprof {

struct RerunDifference {
  std::string file;
  size_t line = 0;       ///< of the log
  std::string what;      ///< "address", "segment", "out of memory", or the name of a statistic
  std::string expected;  ///< as recorded
  std::string got;       ///< from the allocator
};

struct RerunResult {
  size_t recordings = 0;
  size_t equal = 0;
  uint64_t requests = 0;  ///< of all recordings together
  uint64_t phases = 0;
  uint64_t phases_ended_early = 0;  ///< followed by events that belong to no phase
  std::vector<RerunDifference> differences;

  bool all_equal() const { return equal == recordings; }
};

}  // namespace metaprof
