#pragma once
// Estimates against measurements, as `metaprof check` shows them.

#include <string>
#include <vector>

#include "evidence/check.h"

namespace metaprof {

/// A line for each measurement: recorded and estimated peaks, their errors, phases that are equal, the first
/// event that differs; then how many of them hold.
std::string check_text(const std::vector<CheckResult>& results, double tolerance);

/// As docs/check.md describes it.
std::string check_json(const std::vector<CheckResult>& results, double tolerance);

}  // namespace metaprof
