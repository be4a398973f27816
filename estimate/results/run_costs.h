#pragma once
// What the steps of a program that was run compute, by rank.

#include <map>
#include <string>

#include "opcount/counts.h"

namespace metaprof {

struct RunCosts {
  std::map<int, Counts> by_rank;  ///< of the first step; a rank that is not here: not asked for, or not known
  std::string unknown;  ///< why a rank's are not known, as a sentence; empty: all are, or none were asked for
};

}  // namespace metaprof
