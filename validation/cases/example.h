#pragma once
// Example calls as records write them: "f32[2,3] f32[3]/1 (1 2) None". A list of tensors is "(f32[2]
// f32[3])".

#include "meta/session/call.h"

namespace metaprof {

/// Arguments for one call. Floating tensors require grad if `gradients`; they live on the session's device
/// unless the text says otherwise. An Error names the operator and the text.
std::vector<Value> example_arguments(Session& session, const Operator& op, std::string_view text,
                                     bool gradients);

}  // namespace metaprof
