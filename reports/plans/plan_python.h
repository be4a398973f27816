#pragma once
// A plan of recomputation as a Python file that applies it to a model.

#include <string>
#include <vector>

namespace metaprof {

/// A module with the function `apply_plan(model)`; it needs PyTorch alone. `patterns`: those of --checkpoint;
/// `about`: a line that says whose plan it is.
std::string plan_python(const std::vector<std::string>& patterns, const std::string& about);

}  // namespace metaprof
