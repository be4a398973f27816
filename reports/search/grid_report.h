#pragma once
// Tables of many runs: the largest inputs that fit (`metaprof fit`), and a grid of options (`metaprof
// sweep`).

#include <string>

#include "estimate/results/search/grid.h"

namespace metaprof {

/// `width`: as in TextTable::text.
std::string fit_text(const FitReport& report, size_t width = 0);

std::string fit_json(const FitReport& report);

/// A line for each run, with differences to the first. A star stands at those that no other run on the same
/// device and inputs beats in both memory and FLOPs.
std::string sweep_text(const SweepReport& report, size_t width = 0);

/// RFC 4180: a header, then a line for each run.
std::string sweep_csv(const SweepReport& report);

std::string sweep_json(const SweepReport& report);

}  // namespace metaprof
