#pragma once
// The versions of PyTorch whose rules are known: what `metaprof frameworks` shows.

#include <string>
#include <vector>

#include "validation/results/compared_versions.h"

namespace metaprof {

struct FrameworkRow {
  ComparedVersion compared;
  int cuda = 0, cudnn = 0;  ///< of its wheel: 13000 is 13.0, 91900 is 9.19.0
};

std::string frameworks_text(const std::vector<FrameworkRow>& rows);
/// {"schema": "metaprof.frameworks", "schema_version": 1, "newest": "2.15.0", "frameworks": [{"version", "cuda",
/// "cudnn", "steps", "steps_equal", "reserved_equal", "worst_allocated_error", "cases", "cases_equal"}]}
std::string frameworks_json(const std::vector<FrameworkRow>& rows);

}  // namespace metaprof
