#pragma once
// Differences that are known, and why they are there. They stay differences: a report counts them as unequal
// and shows the reason beside them.

#include <span>
#include <string_view>

#include "evidence/op_replay.h"

namespace metaprof {

struct KnownDifference {
  std::string_view cases;   ///< shell wildcard over case names
  std::string_view what;    ///< words of CaseDifference::What with commas between them; "*": all
  std::string_view reason;  ///< one line
};

std::span<const KnownDifference> known_differences();

/// The reason that covers everything in which this case differs; null if there is none.
const KnownDifference* reason_for(const CaseResult& result);

}  // namespace metaprof
