#pragma once
// What each budget of memory costs in computation: the curve of `metaprof plan --pareto`.

#include <string>

#include "reports/plans/checkpoint_report.h"

namespace metaprof {

/// A line for each point.
std::string plan_curve_text(const CheckpointReport& report);
/// Steps: to the right more memory, upwards more that is computed again.
std::string plan_curve_svg(const CheckpointReport& report);
/// A page that needs nothing else: the picture, and a table with each point's plan.
std::string plan_curve_html(const CheckpointReport& report);

}  // namespace metaprof
