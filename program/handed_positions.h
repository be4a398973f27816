#pragma once
// What a module is handed besides what its calls read. Nobody sees it but a checkpoint, which holds all that the module
// was called with. No graph says it; where the library that the module is from is known, its source does.

#include "program/program.h"

namespace metaprof {

/// Puts `step::keep([%positions])` before the calls of each decoder layer of transformers, as part of the layer's call,
/// where the model around it has rotary embeddings, and so before those of its `self_attn`: they are handed the positions,
/// although only the rotary embedding reads them. (So in the models of transformers 5.17 that have both, but for seven of
/// some 150; three layers do not hand them on.)
void hand_positions(Program& program);

}  // namespace metaprof
