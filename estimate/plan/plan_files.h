#pragma once
// Plans that others made, as files.

#include <string>
#include <vector>

namespace metaprof {

struct GivenPlan {
  std::string name;                   ///< of who made it
  std::vector<std::string> patterns;  ///< of --checkpoint
};

/// A JSON object {"strategy": "sac_ilp", "checkpoint": ["model.h.*", …]}, or {"strategies": [such objects]}, as
/// `metaprof plan --json` writes it, whose "curve" is read, too. Other members are not read; a plan without a name has that of the file.
/// Errors: it cannot be read, is no JSON, or has another form.
std::vector<GivenPlan> read_plans(const std::string& file);

}  // namespace metaprof
