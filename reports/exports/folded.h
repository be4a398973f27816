#pragma once
// What is alive at the peak as folded stacks, for flame graphs (flamegraph.pl, speedscope, inferno): a line
// for each stack of modules, operator and category, with its bytes.

#include <string>

#include "profiler/timeline.h"

namespace metaprof {

/// "model;layer1;0;conv1;aten::convolution;activation 25690112", by name. `at_peak` must list every storage
/// that is alive. Blanks, semicolons and control characters in names become `_`.
std::string folded_stacks(const std::vector<LargeStorage>& at_peak);

}  // namespace metaprof
