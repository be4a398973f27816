#pragma once
// The dense gradient of a table of rows, shared by embedding and embedding_bag.

#include "meta/op/call.h"

namespace metaprof {

/// Memory of embedding_backward_cuda_kernel: result 0 (the table's gradient) and the temporaries around it,
/// for `count` sorted indices.
void embedding_gradient(Call& call, int64_t count, DType index_type);

}  // namespace metaprof
