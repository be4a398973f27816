#pragma once
// What a first step computes, and how long that takes: one table and one set of members for all reports.

#include <nlohmann/json.hpp>
#include <string>

#include "opcount/counts.h"

namespace metaprof {

/// Adds "flops", "flops_all", "bytes_moved", "roofline_seconds" and "expected_seconds" (docs/reference/profile_report.md).
void add_costs(nlohmann::ordered_json& json, const Counts& counts);

/// The same as a table: a column for each phase.
std::string costs_table(const Counts& counts);

}  // namespace metaprof
