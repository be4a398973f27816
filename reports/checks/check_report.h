#pragma once
// Estimates against measurements and earlier reports, as `metaprof check` shows them.

#include <string>

#include "estimate/results/check.h"

namespace metaprof {

/// A line for each measurement: recorded and estimated peaks, their errors, phases that are equal, the first
/// event that differs; then how many of them hold. For each baseline its figures and what changed most. Then
/// what is outside the tolerance.
std::string check_text(const CheckReport& report);

/// As docs/how_to/check.md describes it.
std::string check_json(const CheckReport& report);

/// JUnit's XML: a test case for each measurement and baseline.
std::string check_junit(const CheckReport& report);

/// SARIF 2.1.0: a result for each tolerance that is exceeded, at the user's line where it is known. `version`: of this
/// program.
std::string check_sarif(const CheckReport& report, std::string_view version);

}  // namespace metaprof
