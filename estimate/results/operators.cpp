#include "estimate/results/operators.h"

#include <algorithm>
#include <numeric>

namespace metaprof {

int64_t Coverage::calls() const {
  return std::accumulate(operators.begin(), operators.end(), int64_t{0},
                         [](int64_t sum, const CoverageRow& row) { return sum + row.calls; });
}

int64_t Coverage::known_calls() const {
  return std::accumulate(
      operators.begin(), operators.end(), int64_t{0},
      [](int64_t sum, const CoverageRow& row) { return sum + (row.known ? row.calls : 0); });
}

int64_t Coverage::known_operators() const {
  return std::count_if(operators.begin(), operators.end(), [](const CoverageRow& row) { return row.known; });
}

}  // namespace metaprof
