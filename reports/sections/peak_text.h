#pragma once
// Text about the peak, for the reports that have it.

#include <string>
#include <vector>

#include "profiler/timeline.h"

namespace metaprof {

/// "forward, step 1, micro-batch 2": counted from 1, as people do.
std::string place(const StepPart& part);
/// ", in ConvolutionBackward0 of model.layer1"; nothing where both are empty.
std::string in_call(const std::string& op, const std::string& module);
/// "1.2 GiB (1 288 490 188 B)"
std::string both_units(int64_t bytes);

/// What is alive at the peak, by category; those with less than `least` of it (0.005) are one row.
std::string category_table(const PeakMoment& peak, double least = 0);
/// The largest storages alive at the peak. `lines`: of the program, by storage; null: they are not known.
std::string largest_table(const PeakMoment& peak, const std::vector<std::string>* lines = nullptr,
                          size_t width = 0);

}  // namespace metaprof
