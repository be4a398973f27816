#pragma once
// The one place where a call's arguments are checked, whoever makes the call: before any layer and any body.

#include "meta/session/session.h"

namespace metaprof {

/// Arguments as the schema has them: a number stands for a list of the schema's length, or for a wrapped scalar where a
/// tensor is wanted. Errors: an argument is none that the operator takes (meta/op/takes.h).
void check_arguments(Session& session, const Operator& op, std::span<Value> arguments);

}  // namespace metaprof
