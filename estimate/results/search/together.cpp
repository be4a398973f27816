#include "estimate/results/search/together.h"

namespace metaprof {

Bytes TogetherReport::takes() const {
  Bytes all;
  for (const TogetherRow& row : rows) all += row.takes();
  return all;
}

Bytes TogetherReport::least() const {
  Bytes all;
  for (const TogetherRow& row : rows) all += row.least();
  return all;
}

}  // namespace metaprof
