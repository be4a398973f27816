#pragma once
// What `metaprof run` found, as text and as JSON.

#include <string>

#include "capture/launch/run.h"
#include "estimate/results/run_costs.h"
#include "estimate/results/verdict.h"
#include "reports/profile/profile_report.h"

namespace metaprof {

/// What profile's reports are made of, for one device of one process: with FLOPs and time, if `costs` has them.
ProfileReport profile_of(const RunReport& report, const RankRun& rank, const RunCosts& costs = {});

/// That with the highest peak of reserved bytes. There must be one.
const RankRun& largest_rank(const RunReport& report);

/// The row in which the program took most memory, where that was for something else than a phase of its training; null.
const RunPhase* named_peak(const RankRun& rank);

/// Whether the rank fits its device: by what the allocator reserved at most; where memory ran out, by what was asked for
/// then, or, if the program caught it and went on, by what it reserved since. A program that was ended before it was
/// done does not.
Verdict verdict_of(const RunReport& report, const RankRun& rank);

/// The verdict, a row per phase, the modules, the peak, data that the program read; of several ranks a row each, and
/// the rest of the one with the highest peak.
/// Errors: an unknown column.
std::string run_text(const RunReport& report, const TextOptions& options, const RunCosts& costs = {});

/// As docs/reference/run.md describes it; ends with a newline.
std::string run_json(const RunReport& report, const RunCosts& costs = {});

}  // namespace metaprof
