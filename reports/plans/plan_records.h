#pragma once
// What planners of activation checkpointing read: docs/how_to/planners.md describes every field with its unit.

#include <string>
#include <string_view>
#include <vector>

#include "estimate/results/search/plan_input.h"

namespace metaprof {

/// "rotor", "checkmate", "sac", "knapsack", "csv", "json".
std::vector<std::string> plan_formats();

/// Errors: an unknown format.
std::string plan_record(const PlanReport& report, std::string_view format);

}  // namespace metaprof
