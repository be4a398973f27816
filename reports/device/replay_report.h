#pragma once
// What a step needed on a real device, beside the estimate.

#include <string>

#include "estimate/results/device/device_replay.h"

namespace metaprof {

/// `width`: as in TextTable::text.
std::string replay_text(const ReplayComparison& comparison, size_t width = 0);
/// docs/reference: reports/schema/replay.schema.json
std::string replay_json(const ReplayComparison& comparison);

}  // namespace metaprof
