#pragma once
// Dtypes that an exporter wrote down as constants although the source took them from a tensor:
// `hidden_states.to(input_dtype)`, `torch.empty(shape, dtype=input.dtype)`. Under autocast such a tensor may
// have another type than when the program was exported.

#include <vector>

#include "meta/op/registry.h"
#include "meta/program/program.h"

namespace metaprof {

/// True if the source line of this call names a 32-bit type itself: torch.float32, torch.float, .float().
bool names_float32(const Program& program, const GraphNode& node);

/// For each node of the graph: it multiplies tensors that the source converts to 32 bits just for that
/// (`a.float() @ b.float()`). So it stands where autocast is off, which would undo the conversions; a trace
/// on another device than the one that autocast is for does not record that.
std::vector<char> products_of_float32(const Program& program, const Graph& graph, const Registry& registry);

/// For each node of the graph the value whose dtype its `dtype` argument was taken from; kNoValue where there
/// is no such argument, where it is not fp32, where the source line spells it out, or where no such value can
/// be told. Of a statement only its first line is known, so:
///  - `x.dtype` is that of what the same function bound to `x` last;
///  - a conversion that changed nothing while exporting goes back to the type that the enclosing module got:
///    that of its first floating argument;
///  - what a factory makes has the type of what it is combined with first, if that, or what it was made of by
///    calls that take no other tensor, was there before it.
std::vector<ValueId> dtype_sources(const Program& program, const Graph& graph);

}  // namespace metaprof
