#pragma once
// Sizes that cuDNN alone knows.

#include "meta/session/session.h"

namespace metaprof {

/// Whether sizes that cuDNN alone knows count as a device has them. Otherwise (--workspaces none) they are those of the
/// emulated device with which the recordings were made.
bool counts_sizes_of_cudnn(const Session& session);

/// What cudnnDropoutGetStatesSize answers, in bytes. An estimate.
int64_t dropout_state_bytes(const Session& session);

}  // namespace metaprof
