#include "estimate/results/cudagraphs.h"

#include <algorithm>

namespace metaprof {

bool CudagraphsReport::all_captured() const { return std::ranges::all_of(graphs, &CaptureVerdict::captured); }

}  // namespace metaprof
