#pragma once
// A run for trace viewers (Perfetto, chrome://tracing): phases, modules and operators as slices, the live
// bytes of each category as a counter.

#include <string>

#include "profiler/schedule.h"

namespace metaprof {

/// The Trace Event Format's JSON object form. Times are microseconds of the schedule's clock.
std::string chrome_trace(const Schedule& schedule, std::string_view title);

}  // namespace metaprof
