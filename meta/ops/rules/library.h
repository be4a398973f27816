#pragma once
// Memory that libraries take from the allocator and keep: one block per (library, handle, stream).

#include "meta/op/call.h"

namespace metaprof {

/// cuBLAS's workspace of the current handle and stream; taken at the first product, after its result was
/// allocated. The engine's device thread has a handle of its own.
void blas_workspace(Call& call);
/// cuBLASLt's.
void lt_workspace(Call& call);

/// cuDNN's random state for dropout between recurrent layers; made when first needed, kept for ever, and from
/// then on handed to every call. Undefined before.
Tensor dropout_state(Call& call, bool needed);

}  // namespace metaprof
