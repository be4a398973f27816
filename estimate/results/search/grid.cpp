#include "estimate/results/search/grid.h"

#include <algorithm>

namespace metaprof {

bool FitReport::all_fit() const {
  return std::ranges::all_of(rows, [](const FitRow& row) { return row.largest.has_value(); });
}

bool SweepReport::all_fit() const {
  return std::ranges::all_of(rows, [](const SweepRow& row) { return row.fits; });
}

}  // namespace metaprof
