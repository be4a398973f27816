#pragma once
// What CUDA graphs would cost, as `metaprof cudagraphs` shows it.

#include <string>

#include "estimate/results/cudagraphs.h"

namespace metaprof {

std::string cudagraphs_text(const CudagraphsReport& report);

/// `metaprof.cudagraphs` (docs/explanation/cudagraphs.md).
std::string cudagraphs_json(const CudagraphsReport& report);

/// The tree of recorded graphs as Graphviz draws it.
std::string cudagraphs_dot(const CudagraphsReport& report);

}  // namespace metaprof
