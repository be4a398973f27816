#pragma once
// The table of the per-node pass (profiler/nodes/nodes.h).

#include <string>

#include "reports/profile/profile_report.h"
#include "reports/tables/figure_table.h"

namespace metaprof {

/// The report must have nodes. `accumulated` is the sum of what this node and those above it in the forward
/// keep. Errors: an unknown column.
FigureTable node_table(const ProfileReport& report, const TextOptions& options);

/// "Conv2d", "operator", "in place", "view", "input".
std::string node_type(const ProfileReport& report, const NodeRow& row);

/// What the forward keeps in all, in two lines.
std::string node_totals(const NodeProfile& nodes);

}  // namespace metaprof
