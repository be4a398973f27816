#pragma once
// The answers of a search for a module of the user's Python, checked: the module is captured again at the size that was found and
// at the next one.

#include <string>

#include "estimate/prepare/model.h"
#include "estimate/results/search/grid.h"

namespace metaprof {

/// Whether the model is such a module.
bool can_recapture(const Model& model);

/// What captures at sizes near the row's answer say replaces it. `run`: of the row; `dimension`: "batch" or "sequence". Returns
/// what there is to say of it. Errors: as captured_module.
std::string recapture(const Model& model, const RunOptions& run, const std::string& dimension, FitRow& row);

}  // namespace metaprof
