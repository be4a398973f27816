#pragma once
// Calls of operators that have no record.

#include "meta/session/call.h"
#include "program/program.h"

namespace metaprof {

/// Results as the program describes them. The call is marked in the trace, and its gradients have the sizes of
/// its arguments; nothing else is known of it. `is_known`: its results are all that it takes, so that it is not marked.
ResultList call_unmodelled(Session& session, std::string_view op, const std::vector<Value>& arguments,
                           const std::vector<TensorFacts>& results, bool is_known = false);

/// The same for a call whose results exist: only its backward is not known.
void attach_unmodelled(Session& session, std::string_view op, const std::vector<Tensor>& arguments,
                       const std::vector<Tensor>& results);

}  // namespace metaprof
