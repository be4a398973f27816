#pragma once
// An epoch of batches of different lengths, as text and JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "estimate/results/epoch.h"

namespace metaprof {

/// "Out of memory in step 17 of 203, in the forward of a batch of 8 x 743 tokens …"; empty: it was not.
std::string epoch_end_line(const EpochReport& epoch);
std::string epoch_text(const EpochReport& epoch);
nlohmann::ordered_json epoch_json(const EpochReport& epoch);

}  // namespace metaprof
