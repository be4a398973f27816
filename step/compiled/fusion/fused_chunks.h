#pragma once
// Chunks beside fused kernels (torch/csrc/jit/passes/graph_fuser.cpp, 2.11).
//
//   z = x + y          x0, x1, y0, y1 = chunks of x and y, broadcast to each other
//   a, b = z.chunk(2)  a = x0 + y0
//   f(a, b)            f(a, b = x1 + y1)
//
// On the right the sums can be a part of the kernel of f.

#include <functional>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// Moves the chunks that make `producer`, which only `consumer` takes, before what makes the chunks' argument, if a
/// kernel has code for that. False: nothing was moved.
bool move_chunk(Node* consumer, Value* producer, const std::function<bool(const Node&)>& has_code);
/// Broadcasts and chunks instead of what move_chunk has left between kernels.
void replace_broadcasting_chunks(Block& block, const Registry& registry);
/// Chunks that only one kernel takes become its first calls: it takes the whole.
void fuse_first_chunks(Block& block);

}  // namespace metaprof::ir
