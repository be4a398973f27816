#pragma once
// What is alive when a run has most allocated, and which variables of the program hold it.

#include <string>
#include <vector>

#include "capture/launch/launch_report.h"

namespace metaprof {

/// Replaces what is alive at the peak by what the recorder saw, where the peak is of a step that the trace does not have.
/// `traced`: what was allocated at most in the steps that it has.
void take_later_peak(RankRun& run, Bytes traced);

RunPeaks peaks_of(const RunReport& report);

/// What one variable holds at the peak.
struct PeakHolder {
  std::string held_by;                      ///< "losses (train.py:31), a list of 20"
  Category category = Category::temporary;  ///< of the largest of them
  Bytes bytes;
  int64_t storages = 0;  ///< at least
};

/// Those that are known, the largest first.
std::vector<PeakHolder> peak_holders(const RankRun& run);

/// The largest that holds results, by itself or by a graph; empty: there is none.
std::string holder_of_results(const RankRun& run);

}  // namespace metaprof
