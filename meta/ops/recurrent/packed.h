#pragma once
// Packed sequences: of all that have a step its rows stand together, step by step, the longest sequence first. How many
// have each step (batch sizes) is data on the host.

#include "meta/session/call.h"

namespace metaprof {

/// How many sequences have each step. Where the program does not say what `batch_sizes` holds: all of `batch` sequences
/// have as many steps as `rows` allow, and one of them the others, which the trace calls an assumption.
Sizes batch_sizes_of(const Call& c, const Tensor& batch_sizes, int64_t rows, int64_t batch);

}  // namespace metaprof
