#pragma once
// How long a call is expected to take on a real device: no bound, an estimate by a few assumptions
// (docs/reference/profile_report.md, docs/evidence/accuracy.md).

#include "opcount/rates.h"

namespace metaprof {

/// Seconds from the call's start to the next one's, given what it costs. 0 where it costs nothing.
double expected_seconds(const Trace& trace, const CallRecord& call, const CallCost& cost, const Rates& rates);

}  // namespace metaprof
