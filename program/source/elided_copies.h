#pragma once
// Copies that the exporter's tensors did not need. `x.contiguous()` of a tensor that is contiguous gives back x before
// anything is called (torch/csrc/autograd/generated/python_variable_methods.cpp, THPVariable_contiguous), so an export
// has no trace of it. On another device x may have other strides, because attention, convolutions and products have other
// kernels there, and the source copies it. All other calls that may copy (reshape, flatten, to, clone) are in an export in
// any case, and copy where the strides of the run ask for it.

#include "program/program.h"
#include "program/source/frames.h"

namespace metaprof {

/// Calls `aten::contiguous` where a source line does, of a tensor that was contiguous while exporting: in the graph and in
/// those inside it.
void restore_contiguous(Program& program);

/// Fills in GraphNode::copies_to_view: views of tensors that were contiguous while exporting, unless the source shows that
/// nothing stands between the tensor and its view. A function that is no `forward` leaves no line, nor does a
/// `x = x.contiguous()` by itself.
void find_copies_to_view(const Program& program, Graph& graph, const SourceFrames& source);

}  // namespace metaprof
