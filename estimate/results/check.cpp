#include "estimate/results/check.h"

#include <algorithm>

namespace metaprof {

bool CheckReport::within() const {
  const auto holds = [&](const auto& result) { return result.within(tolerance); };
  return std::ranges::all_of(measurements, holds) && std::ranges::all_of(baselines, holds);
}

}  // namespace metaprof
