#include "estimate/results/device/measurement.h"

#include <algorithm>

namespace metaprof {
namespace {

// Rates of large work, which small work does not reach.
double best_rate(const auto& rows, const auto& amount, const auto& counts) {
  double best = 0;
  for (const auto& row : rows)
    if (row.seconds && counts(row)) best = std::max(best, amount(row) / row.seconds->median);
  return best;
}

}  // namespace

MeasuredRates rates_of(const DeviceMeasurement& m) {
  MeasuredRates rates;
  for (const MemoryGrowth& growth : m.outside) rates.outside += growth.bytes;
  // Smaller tensors, which repeated work finds in the cache, say nothing of the memory.
  const int64_t beyond_cache = 4 * m.hardware.l2_cache.count;
  rates.bandwidth = best_rate(
      m.elementwise, [](const auto& row) { return 3.0 * static_cast<double>(row.bytes.count); },
      [&](const auto& row) { return 3 * row.bytes.count >= beyond_cache; });
  const auto flops_of = [&](std::string_view type) {
    return best_rate(
        m.products,
        [](const MeasuredProduct& row) {
          return 2.0 * static_cast<double>(row.rows) * static_cast<double>(row.columns) *
                 static_cast<double>(row.inner);
        },
        [&](const MeasuredProduct& row) { return row.type == type; });
  };
  rates.flops_f32 = flops_of("f32");
  rates.flops_tf32 = flops_of("tf32");
  rates.flops_f16 = flops_of("bf16");
  rates.flops_f64 = flops_of("f64");
  return rates;
}

}  // namespace metaprof
