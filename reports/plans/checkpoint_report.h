#pragma once
// What of a step to compute again so that it fits in a budget: what `metaprof plan` shows.

#include <string>

#include "estimate/results/search/checkpoint_plan.h"

namespace metaprof {

/// Where nothing holds one line says why.
std::string checkpoint_text(const CheckpointReport& report);

/// {"schema": "metaprof.plan", "schema_version": 1, …, "strategy", "budget", "peak", "reserved",
/// "recompute_flops", "holds", "checkpoint": [patterns], …}
std::string checkpoint_json(const CheckpointReport& report);

/// What strategies are told: {"schema": "metaprof.plan_costs", …, "classes": […]}.
std::string plan_costs_json(const CheckpointReport& report);

/// The plan to take as a Python file: reports/plans/plan_python.h.
std::string checkpoint_python(const CheckpointReport& report);

}  // namespace metaprof
