#pragma once
// Sizes of what fused kernels compute: derivatives of broadcasting operators ask for them, and a result must not be
// written to memory only to be asked for its sizes (torch/csrc/jit/passes/graph_fuser.cpp, 2.11).

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

/// The node asks for all sizes of a tensor.
bool is_size(const Node& node);
/// Who asks for the value's sizes gets those that follow from the sizes of its maker's tensors.
void replace_sizes(Value* value);
/// Results of a kernel that are only asked for their sizes go.
void drop_outputs_for_sizes(Node* group);

}  // namespace metaprof::ir
