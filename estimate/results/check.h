#pragma once
// Estimates against measurements and earlier reports.

#include <string>
#include <vector>

#include "validation/results/check_result.h"

namespace metaprof {

struct CheckReport {
  std::vector<CheckResult> measurements;
  std::vector<BaselineResult> baselines;
  double tolerance = 0;
  bool of_one_model = false;  ///< and so measurements may stand in one table, phase by phase

  bool within() const;
};

}  // namespace metaprof
