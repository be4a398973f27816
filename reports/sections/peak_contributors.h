#pragma once
// Why a step needs its memory: what is alive at the peak, in groups that people speak of. Equal layers are one
// group, and so are the state of the optimizer, gradients and parameters.

#include <string>
#include <vector>

#include "estimate/results/peak_contributors.h"

namespace metaprof {

/// The largest first; their bytes sum to those of `held`.
std::vector<PeakContributor> peak_contributors_of(const std::vector<LargeStorage>& held,
                                                  const SourceLines& lines);

/// The largest few, and what the others have together. `width`: as in TextTable::text.
std::string peak_contributors_table(const std::vector<PeakContributor>& peak_contributors, size_t width = 0);

}  // namespace metaprof
