#pragma once
// Conversions that changed nothing while exporting. `y = x.to(torch.float32)` of an fp32 tensor gives back x
// itself, so an exporter, which tells tensors apart by their Python objects, writes `y` wherever the source
// says `x` from then on. In a model of 16 bits x and y differ: the residual that a norm upcasts for itself
// stays in 16 bits. The same holds of `y = x.contiguous()`, which on another device may be a copy, where an export has it
// (elided_copies.h).

#include "meta/op/registry.h"
#include "program/program.h"
#include "program/source/frames.h"

namespace metaprof {

/// By its schema the operator may give back its argument, and is asked for a dtype: to.dtype and its like.
bool is_conversion(const Operator& op);

/// Gives uses of such a conversion back to the converted tensor: those outside the function that made it,
/// unless the function returned the result; and those outside the statement, where no name holds it
/// (`h.to(torch.float32).pow(2)`). Where tensors have the dtypes of the export, both are one tensor and nothing
/// changes.
void undo_conversions(Graph& graph, const SourceFrames& source, const Registry& registry);

}  // namespace metaprof
