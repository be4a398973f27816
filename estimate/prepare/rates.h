#pragma once
// What a device can do at best.

#include <map>
#include <string>

#include "meta/platform/measured_rates.h"
#include "meta/platform/platform.h"
#include "opcount/counts.h"

namespace metaprof {

/// `environment`: variables of the run; some switch TF32 on or off.
/// `measured`: what was measured on it, from which expected times follow.
Rates rates_of(const Platform& platform, const std::map<std::string, std::string>& environment = {},
               const MeasuredRates& measured = {});

}  // namespace metaprof
