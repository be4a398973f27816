#pragma once
// One training step run in two ways: the figures that are compared.

#include <string>

#include "estimate/results/execution.h"

namespace metaprof {

/// A table of both.
std::string comparison_text(const ExecutionComparison& comparison);
std::string comparison_text(const BranchComparison& comparison);
std::string comparison_text(const LoopComparison& comparison);

}  // namespace metaprof
