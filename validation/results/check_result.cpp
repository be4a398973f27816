#include "validation/results/check_result.h"

#include <algorithm>
#include <cmath>

namespace metaprof {

std::optional<double> CheckRow::error() const {
  if (!recorded || !estimated) return std::nullopt;
  if (*recorded == *estimated) return 0.0;
  if (*recorded == 0) return std::nullopt;
  return static_cast<double>(*estimated - *recorded) / static_cast<double>(*recorded);
}

bool CheckRow::exceeds(double tolerance) const {
  if (!recorded) return false;
  const auto size = error();
  return !size || std::abs(*size) > tolerance;
}

std::vector<const CheckRow*> CheckResult::decisive() const {
  return {peak_allocated.recorded ? &peak_allocated : &peak_requested, &peak_reserved};
}

bool CheckResult::within(double tolerance) const {
  return std::ranges::none_of(decisive(), [&](const CheckRow* peak) { return peak->exceeds(tolerance); });
}

std::optional<double> BaselineRow::growth() const {
  if (before == after) return 0.0;
  if (before == 0) return std::nullopt;
  return static_cast<double>(after - before) / static_cast<double>(before);
}

bool BaselineRow::grew_above(double tolerance) const {
  return after > before && growth().value_or(tolerance + 1) > tolerance;
}

bool BaselineResult::within(double tolerance) const {
  return !out_of_memory_since && !of_another_model() &&
         std::ranges::none_of(rows, [&](const BaselineRow& row) { return row.grew_above(tolerance); });
}

}  // namespace metaprof
