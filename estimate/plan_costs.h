#pragma once
// What it costs to compute the modules of a model again, measured: the step is run once for each kind of them.

#include <string>
#include <vector>

#include "estimate/step_run.h"
#include "planner/module_tree.h"

namespace metaprof {

/// All modules of a class.
std::vector<int32_t> members_of(const ModuleTree& tree, int32_t of);

/// The modules of the program with their lists and costs. `kept`: bytes that the forward keeps. A class that
/// saves less than a thousandth of that is no candidate.
ModuleTree measured_modules(StepRunner& runner, const StepFigures& plain);

/// Whether anything saves memory when it is computed again.
bool has_candidates(const ModuleTree& tree);

}  // namespace metaprof
