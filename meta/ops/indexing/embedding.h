#pragma once
// The dense gradient of a table of rows, shared by embedding and embedding_bag.

#include "meta/session/call.h"

namespace metaprof {

/// Result 0, the table's gradient, and the temporaries around it when the indices are sorted first
/// (embedding_backward_cuda_kernel and what comes before it).
void sorted_embedding_gradient(Call& call, const Tensor& indices, bool by_frequency);

}  // namespace metaprof
