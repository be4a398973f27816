#pragma once
// Which cards a model needs (`metaprof rent`).

#include <string>

#include "estimate/results/search/rent.h"

namespace metaprof {

/// `width`: as in TextTable::text.
std::string rent_text(const RentReport& report, size_t width = 0);
std::string rent_json(const RentReport& report);

}  // namespace metaprof
