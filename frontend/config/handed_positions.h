#pragma once
// What decoder layers of transformers are handed besides what their calls read.

#include "meta/program/program.h"

namespace metaprof::configs {

/// Puts `step::keep([%positions])` before the calls of each decoder layer, and before those of its `self_attn`, where the
/// model around it has rotary embeddings: a checkpoint holds the positions that the layer is called with. As
/// meta/source/handed_arguments.h does for exports.
void hand_positions(Program& program);

}  // namespace metaprof::configs
