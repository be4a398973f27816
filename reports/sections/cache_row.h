#pragma once
// What a decoder keeps of the tokens that it has seen, by layer.

#include <string>
#include <vector>

#include "estimate/results/cache_row.h"

namespace metaprof {

/// "  26 layers (0, 1, …): 512 tokens, 4.0 MiB each" for layers that keep as much, and the sum.
std::string cache_text(const std::vector<CacheRow>& rows);

}  // namespace metaprof
