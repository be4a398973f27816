#pragma once
// A model as planners of activation checkpointing want it.

#include "estimate/estimate.h"
#include "estimate/results/search/plan_input.h"

namespace metaprof {

PlanReport plan_report(const Estimate& estimate);

}  // namespace metaprof
