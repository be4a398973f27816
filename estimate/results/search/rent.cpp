#include "estimate/results/search/rent.h"

#include <algorithm>

namespace metaprof {

bool RentReport::any_fits() const {
  return std::ranges::any_of(rows, [](const RentRow& row) {
    return std::ranges::any_of(row.cells, [](const RentCell& cell) { return cell.largest.has_value(); });
  });
}

}  // namespace metaprof
