#include "estimate/results/search/checkpoint_plan.h"

#include <algorithm>
#include <tuple>

namespace metaprof {

bool CheckpointReport::uses_bus() const {
  return std::ranges::any_of(rows, [](const CheckpointRow& row) { return row.over_bus.count > 0; });
}

const CheckpointRow& CheckpointReport::best() const {
  const CheckpointRow* best = &plain;
  const bool by_time = uses_bus();
  const auto order = [&](const CheckpointRow& row) {
    const int64_t cost = by_time ? 0 : row.recompute_flops.count;
    return std::tuple(!row.holds, row.holds ? cost : row.allocated.count, row.recompute_seconds);
  };
  for (const CheckpointRow& row : rows)
    if (best == &plain || order(row) < order(*best)) best = &row;
  return *best;
}

}  // namespace metaprof
