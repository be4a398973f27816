#pragma once
// Whether a step fits: the first line of every report.

#include <string>

#include "estimate/results/verdict.h"

namespace metaprof {

/// "FITS h200: needs 1.2 GiB + 691.0 MiB outside the allocator of 139.8 GiB, margin 0 %; 137.9 GiB stay free"
std::string verdict_line(const Verdict& verdict);

}  // namespace metaprof
