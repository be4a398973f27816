#pragma once
// Whether a step fits: the first line of every report.

#include <optional>
#include <string>

#include "estimate/results/verdict.h"

namespace metaprof {

/// "FITS h200: needs 1.2 GiB + 691.0 MiB outside the allocator of 139.8 GiB, margin 0 %; 137.9 GiB stay free"
std::string verdict_line(const Verdict& verdict);

/// "runs from 19.4 GiB: with less than 23.2 GiB the allocator frees its cache and asks again, which takes time", and a line
/// feed; empty: it is not known, or the run takes no more.
std::string runs_from_line(const Verdict& verdict, std::optional<Bytes> runs_from);

}  // namespace metaprof
