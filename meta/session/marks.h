#pragma once
// Tensors that are read otherwise than they lie in memory: `_conj` and `_neg_view` make views that only have a mark
// (TensorImpl::marks). Operators whose records say so (Facts::reads_marks) and views take them as they are; who else gets
// one as an argument gets a copy without marks, which is made before its kernel runs and lives until it is over.

#include "meta/session/call.h"

namespace metaprof {

/// From now on the view has these marks. Until a first tensor has some, calls are not looked through for them.
void set_marks(Session& session, const Tensor& view, uint8_t marks);

}  // namespace metaprof
