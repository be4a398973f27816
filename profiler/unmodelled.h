#pragma once
// Operators that the project does not know: their results are those that the program records, their
// temporaries and FLOPs are missing from every figure.

#include <string>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

struct UnmodelledRow {
  std::string op;
  std::string module;  ///< of the first call
  int64_t calls = 0;
  bool assumed =
      false;  ///< the operator is known; the size of what it finds follows from data and is assumed
  double share_of_output_bytes = 0;  ///< of the bytes of all new results, 0 to 1; not of views
};

/// Of the first step; the largest share first.
std::vector<UnmodelledRow> unmodelled_rows(const Trace& trace);

}  // namespace metaprof
