#pragma once
// A model as planners of activation checkpointing want it.

#include "estimate/estimate.h"
#include "reports/plan_records.h"

namespace metaprof {

PlanReport plan_report(const Estimate& estimate);

}  // namespace metaprof
