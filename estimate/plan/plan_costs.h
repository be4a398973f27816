#pragma once
// What it costs to compute the modules of a model again, or to save what they keep on the host, measured: the step is
// run once for each kind of them.

#include <string>
#include <vector>

#include "estimate/plan/step_run.h"
#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// All modules of a class.
std::vector<int32_t> members_of(const ModuleTree& tree, int32_t of);

/// What is done with modules so that they keep less.
enum class Treatment : uint8_t { computed_again, on_host };

/// The modules of the program with their lists and costs. A class that saves less than a thousandth of what the
/// forward keeps is no candidate. On the host there are neither calls that could be kept nor lists.
ModuleTree measured_modules(StepRunner& runner, const StepFigures& plain,
                            Treatment treatment = Treatment::computed_again);

/// Whether anything saves memory when it is computed again.
bool has_candidates(const ModuleTree& tree);

}  // namespace metaprof
