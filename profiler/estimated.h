#pragma once
// Memory whose size is an estimate: a closed library alone knows it.

#include <string>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

struct EstimatedRow {
  std::string op;        ///< that took it first
  std::string module;    ///< of that call
  int64_t storages = 0;  ///< in the first step
  Bytes bytes;           ///< of all of them
  Bytes largest;
};

/// Of the first step, by operator; the most bytes first.
std::vector<EstimatedRow> estimated_rows(const Trace& trace);

}  // namespace metaprof
