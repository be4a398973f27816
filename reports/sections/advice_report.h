#pragma once
// What helps a step to fit: what `metaprof advise` shows.

#include <string>

#include "estimate/results/advice.h"

namespace metaprof {

/// "--optimizer-impl fused → 21.7 GiB": what makes it fit; empty: it fits as it is, or nothing does.
std::string cheapest_fix(const AdviceReport& report);

/// "--checkpoint 'model.layers.*' --batch 2"; "(as it is)".
std::string words_of(const AdviceRow& row);

/// `width`: as in TextTable::text.
std::string advice_text(const AdviceReport& report, size_t width = 0);

/// {"schema": "metaprof.advise", "schema_version": 1, …, "rows": [{"changes", "peak", "reserved", "flops", "fits"}]}
std::string advice_json(const AdviceReport& report);

}  // namespace metaprof
