#pragma once
// Calls that write to tensors which they are given (aten::mm.out(a, b, out=c)). What memory they take besides follows
// from the record of the operator that makes such tensors.

#include "meta/session/call.h"
#include "program/program.h"

namespace metaprof {

/// The operator that makes what this call writes; null: the call is none of this kind, or no such operator is known.
const Operator* functional_of(const Registry& registry, const GraphNode& node);

/// Whether an operand is a tensor that is written: one by a name that the operator does not have.
bool is_out(const Operator& functional, const Operand& operand);

/// Runs the call `name`: `given` are the operator's arguments, `outs` what is written, in the order of its results.
/// They are resized where they do not fit. Errors: the operator's own; too few tensors to write.
void call_into(Session& session, std::string_view name, const Operator& functional, std::span<Value> given,
               const Value::Tensors& outs);

}  // namespace metaprof
