#pragma once
// Replays a recorded operator case with tensors without data and compares what comes of it: the operators at
// depth 0 of the recorded forward are called with the recorded arguments, then the engine runs backward.

#include <string>
#include <vector>

#include "evidence/op_log.h"
#include "meta/op/registry.h"

namespace metaprof {

/// One thing that is not as recorded.
struct CaseDifference {
  enum class What : uint8_t { outputs, saved, forward_events, backward_events, grads };
  What what;
  std::string expected, got;
  int64_t bytes = 0;  ///< of events: all that was requested here, less what was in the recording
};
inline constexpr int kWhats = 5;
std::string_view to_string(CaseDifference::What);

struct CaseResult {
  std::string name = {};
  std::string device = {};  ///< "h200", "cpu"
  std::string op = {};      ///< the second part of the name: "nn.functional.conv2d", "layer_norm"
  std::vector<std::string> missing =
      {};  ///< operators without a record, once each; empty: the case is claimed
  std::vector<CaseDifference> differences = {};
  std::string forward_error = {},
              backward_error = {};  ///< an operator failed: all that comes after it is unequal

  bool claimed() const { return missing.empty(); }
  bool equal(CaseDifference::What what) const;
  bool all_equal() const { return differences.empty() && forward_error.empty() && backward_error.empty(); }
};

/// Only claimed cases are run. Recordings of the CPU have no memory events, and of a case that reads device
/// memory only what comes before the reading counts; what cannot be compared is equal.
CaseResult replay(const RecordedCase& recorded);

}  // namespace metaprof
