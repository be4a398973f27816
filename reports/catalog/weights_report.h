#pragma once
// What files of weights hold, and whether it is what a model has: what `metaprof inspect` shows.

#include <string>

#include "estimate/results/weights.h"

namespace metaprof {

/// `every`: a line for each tensor, too.
std::string weights_text(const WeightsReport& report, bool every, size_t width);

/// reports/schema/inspect.schema.json
std::string weights_json(const WeightsReport& report);

}  // namespace metaprof
