#pragma once
// Which calls the framework's fuser puts into one kernel.

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// Its record says that results follow element by element; numbers that it takes are constants or reals.
bool is_fusible(const Node& node);

}  // namespace metaprof::ir
