#pragma once
// A plan as the text of --checkpoint (step/checkpoint_text.h).

#include <string>
#include <vector>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// Its words: modules that are treated alike are written together. With blanks between them they are one value
/// of --checkpoint.
std::vector<std::string> plan_words(const ModuleTree& tree, const RecomputePlan& plan);

}  // namespace metaprof
