#pragma once
// Memory that libraries take from the allocator: for one call, or one block per (library, handle, stream) that is
// kept, as the framework's version has it (Framework::keeps_cublas_workspaces).

#include "meta/session/call.h"

namespace metaprof {

/// What a product by cuBLAS works in; asked for after its result was allocated.
void cublas_workspace(Call& call);
/// What a product by cuBLASLt works in, cuBLAS's included where it takes both.
void cublas_lt_workspace(Call& call);

/// cuDNN's random state for dropout between recurrent layers; made when first needed, kept for ever, and from
/// then on handed to every call. Undefined before.
Tensor dropout_state(Call& call, bool needed);

/// Somebody set the state of the device's random generator: who next needs cuDNN's random state makes another one, and the
/// one before goes (aten/src/ATen/native/cudnn/RNN.cpp, get_dropout_state; recorded).
void random_state_was_set(Session& session);

/// What libraries keep on the session's device after a first product on each thread, and after a first recurrent network
/// with dropout.
void take_library_workspaces(Session& session);

/// What cuBLAS and cuBLASLt keep goes, for all streams (torch._C._cuda_clearCublasWorkspaces).
void clear_cublas_workspaces(Session& session);

/// The storages of what they keep. A first call takes these besides what every call takes, and nothing else.
std::vector<uint32_t> cublas_workspaces(const Session& session);

/// Seed and offset of the random numbers of the graph that is captured (capture.h); null: it has none yet.
Ref<Storage>& graph_seed(Session& session);
Ref<Storage>& graph_offset(Session& session);

}  // namespace metaprof
