#pragma once
// What a decoder keeps of the tokens that it has seen, by layer.

#include <string>
#include <vector>

#include "core/units.h"

namespace metaprof {

/// After the call. Bytes are those of the memory that both tensors look into.
struct CacheRow {
  int64_t layer = 0;
  int64_t tokens = 0;  ///< that are kept: with a sliding window no more than that
  Bytes bytes;
};

/// "  26 layers (0, 1, …): 512 tokens, 4.0 MiB each" for layers that keep as much, and the sum.
std::string cache_text(const std::vector<CacheRow>& rows);

}  // namespace metaprof
