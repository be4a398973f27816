#include "estimate/results/weights.h"

namespace metaprof {
namespace {

void add(WeightsReport::Sum& sum, const WeightsReport::Row& row) {
  sum.tensors += 1;
  sum.elements += row.elements;
  sum.bytes += row.bytes;
}

}  // namespace

WeightsReport::Sum WeightsReport::all() const {
  Sum sum;
  for (const Row& row : tensors) add(sum, row);
  return sum;
}

std::map<std::string, WeightsReport::Sum> WeightsReport::by_dtype() const {
  std::map<std::string, Sum> sums;
  for (const Row& row : tensors) add(sums[row.dtype], row);
  return sums;
}

}  // namespace metaprof
