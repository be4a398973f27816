#pragma once
// Sizes of batches: those of a tensor without the last ones, which are the matrix or the vector.

#include "core/error.h"
#include "core/shape.h"

namespace metaprof {

/// Sizes without the last `count`. Errors: there are fewer.
inline Sizes without_last(SizesView sizes, size_t count) {
  if (sizes.size() < count) fail("at least {} dimensions are needed, got {}", count, to_string(sizes));
  return Sizes(sizes.begin(), sizes.end() - static_cast<int64_t>(count));
}

}  // namespace metaprof
