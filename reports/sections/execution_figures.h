#pragma once
// One training step run eagerly and compiled as a graph: the figures that are compared.

#include <string>

#include "estimate/results/execution.h"

namespace metaprof {

/// A table of both.
std::string comparison_text(const ExecutionComparison& comparison);

}  // namespace metaprof
