#pragma once
// Files of weights: what they hold, beside what a model has.

#include <string>

#include "estimate/results/weights.h"

namespace metaprof {

/// `path`: as read_weights. They are compared with `against` (a model, as read_model), or where it is empty with the
/// config.json and the exports that lie in the same folder and can be read; a line of the warnings says why one cannot.
/// Errors: as read_weights; `against` cannot be read.
WeightsReport inspect_weights(const std::string& path, const std::string& against);

}  // namespace metaprof
