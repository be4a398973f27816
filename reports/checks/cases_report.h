#pragma once
// Repeated operator cases, as `metaprof ops --replay` shows them.

#include <string>

#include "validation/results/case_result.h"

namespace metaprof {

/// A row per operator, most differences first; then what is missing, reasons, bytes, totals.
std::string cases_text(const CaseSummary& summary);
/// Every difference, case by case.
std::string cases_differences_text(const CaseSummary& summary);
std::string cases_json(const CaseSummary& summary);

}  // namespace metaprof
