#pragma once
// A profile as metrics that a CI system keeps and compares from run to run (OpenMetrics 1.0 text; GitLab shows it
// on merge requests as a metrics report, Prometheus reads it from a file).

#include <string>

#include "reports/profile/profile_report.h"

namespace metaprof {

/// Gauges `metaprof_…` of the step, labelled with model and device: bytes, FLOPs, seconds. Ends with "# EOF".
std::string open_metrics(const ProfileReport& report);

}  // namespace metaprof
