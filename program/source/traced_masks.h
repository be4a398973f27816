#pragma once
// Attention masks that a library makes only where it is traced. transformers asks before it makes a mask whether it is traced
// or a stream is captured (masking_utils.py: is_tracing in _ignore_causal_mask_sdpa, _ignore_bidirectional_mask_sdpa and
// find_packed_sequence_indices), so that an export has masks that a plain run leaves out: attention is told that it is
// causal instead, takes fewer heads of keys and values as they are (sdpa_attention.py: use_gqa_in_sdpa), and runs
// other kernels.

#include "program/program.h"

namespace metaprof {

/// The program's graph as a plain run calls it; nothing: it has no such mask. What is found are masks of transformers by the
/// calls that make them:
///  - causal, or of all positions, for scaled_dot_product_attention alone: left out. Of a window: if the keys are fewer;
///  - that keep sequences apart which are packed into one, where positions count up: a run looks, and finds one sequence.
/// A mask that depends on an input (padding) stays: data decide it.
std::optional<Graph> without_traced_masks(const Program& program);

}  // namespace metaprof
