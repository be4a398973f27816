#pragma once
// Dtypes that an exporter wrote down as constants although the source took them from a tensor:
// `hidden_states.to(input_dtype)`, `torch.empty(shape, dtype=input.dtype)`. Under autocast such a tensor may
// have another type than when the program was exported.

#include "meta/op/registry.h"
#include "program/program.h"
#include "program/source/frames.h"

namespace metaprof {

/// Fills in GraphNode::dtype_named of the graph's nodes: the source line of the call names a 32-bit type
/// itself (torch.float32, torch.float, .float()).
void find_named_dtypes(const Program& program, Graph& graph);

/// Fills in GraphNode::without_autocast: the call multiplies tensors that the source converts to 32 bits just
/// for that (`a.float() @ b.float()`). So it stands where autocast is off, which would undo the conversions; a
/// trace on another device than the one that autocast is for does not record that. Named dtypes must be known.
void find_products_without_autocast(Graph& graph, const Registry& registry);

/// Fills in GraphNode::dtype_of, where the call has a `dtype` argument of fp32 that the source line does not
/// name, and the tensor that it was taken from can be told. Named dtypes must be known. Of a statement only its
/// first line is known, so:
///  - `x.dtype` is that of what the same function bound to `x` last;
///  - a conversion that changed nothing while exporting goes back to the type that the enclosing module got:
///    that of its first floating argument;
///  - what a factory makes has the type of what it is combined with first, if that, or what it was made of by
///    calls that take no other tensor, was there before it.
void find_dtype_sources(const Program& program, Graph& graph, const SourceFrames& source);

}  // namespace metaprof
