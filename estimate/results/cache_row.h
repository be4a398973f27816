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

}  // namespace metaprof
