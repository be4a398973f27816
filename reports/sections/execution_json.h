#pragma once
// Two ways of a step side by side, as JSON.

#include <nlohmann/json.hpp>

#include "reports/sections/execution_figures.h"

namespace metaprof {

/// {"eager": {"peak_bytes", "saved_bytes", "flops", "kernels"}, "graph": the same, "scope": of what the graph's figures are}
nlohmann::ordered_json comparison_json(const ExecutionComparison& comparison);
/// {"true": the same, "false": the same, "shown": whether it is the first}
nlohmann::ordered_json comparison_json(const BranchComparison& comparison);
/// {"one_trip": the same, "two_trips": the same}
nlohmann::ordered_json comparison_json(const LoopComparison& comparison);

}  // namespace metaprof
