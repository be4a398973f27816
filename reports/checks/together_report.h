#pragma once
// Several processes on one card (`metaprof together`).

#include <string>

#include "estimate/results/search/together.h"

namespace metaprof {

/// `width`: as in TextTable::text.
std::string together_text(const TogetherReport& report, size_t width = 0);
std::string together_json(const TogetherReport& report);

}  // namespace metaprof
