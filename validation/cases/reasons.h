#pragma once
// Differences that are known, and why they are there (known_differences.inc). They stay differences: a report
// counts them as unequal and shows the reason beside them.

#include <string_view>
#include <vector>

#include "validation/results/case_result.h"

namespace metaprof {

struct KnownDifference {
  std::string_view cases;    ///< shell wildcard over case names
  std::string_view devices;  ///< shell wildcard over devices: "h200", "cpu"
  std::string_view what;     ///< words of CaseDifference::What with commas between them; "*": all
  std::string_view reason;   ///< one line
};

/// Reads the lines of such a file; the result looks into the text. Errors: a line without four parts.
std::vector<KnownDifference> parse_known_differences(std::string_view text);

/// Those of the data file.
const std::vector<KnownDifference>& known_differences();

/// The reason that covers everything in which this case differs; null if there is none.
const KnownDifference* reason_for(const CaseResult& result);

}  // namespace metaprof
