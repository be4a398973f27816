#pragma once
// The per-node pass as JSON, for the reports that have it.

#include <nlohmann/json.hpp>

#include "reports/profile/profile_report.h"

namespace metaprof {

/// {"granularity", "rows": [{"index", "name", …}], "outside", "totals"}: docs/reference/profile_report.md.
nlohmann::ordered_json nodes_json(const ProfileReport& report);

}  // namespace metaprof
