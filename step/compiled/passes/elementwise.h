#pragma once
// Which nodes one kernel can run together.

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// An operator that computes every element of its only result from the same places of its arguments; nothing random,
/// nothing written.
bool is_elementwise(const Node& node);

}  // namespace metaprof::ir
