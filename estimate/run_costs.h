#pragma once
// FLOPs and expected time of a program that was run: those of the program that was captured from it.

#include <utility>
#include <vector>

#include "estimate/results/run_costs.h"
#include "program/program.h"

namespace metaprof {

/// `captured`: rank and program. Of a program that the engine cannot run, the costs are not known.
RunCosts costs_of_run(const std::vector<std::pair<int, Program>>& captured);

}  // namespace metaprof
