#pragma once
// Repeats a recorded operator case with tensors without data and compares what comes of it: the operators at
// depth 0 of the recorded forward are called with the recorded arguments, then the engine runs backward.

#include <string>
#include <vector>

#include "meta/platform/framework.h"
#include "validation/recordings/case_log.h"
#include "validation/results/case_result.h"

namespace metaprof {

/// Only claimed cases are run. Recordings of the CPU have no memory events; what cannot be compared is equal. Of a case
/// that reads device memory only what comes before the reading is compared, and it is marked as cut short.
/// `framework`: the version that recorded it.
CaseResult repeat_case(const RecordedCase& recorded, FrameworkVersion framework = {});

struct CaseSelection {
  std::vector<std::string> logs;
  std::string only = "*";           ///< shell wildcard over case names; `*` matches `/` too
  FrameworkVersion framework = {};  ///< that recorded them: logs do not say it
};

/// Repeats cases of recordings. Errors: a log cannot be read, no case has such a name.
CaseSummary repeat_cases(const CaseSelection& selection);

}  // namespace metaprof
