#pragma once
// The function that PyTorch's control flow runs in backward: a part again, and its gradients (create_bw_fn in
// torch/_higher_order_ops/utils.py, PyTorch 2.11).

#include "meta/autograd/modes/run_again.h"

namespace metaprof {

/// Runs the part with gradients, and gives those of its inputs from those of its outputs: of a tensor that requires none, or
/// that the part does not use, zeros; of what is no tensor, nothing. None shares memory with another one or with what was given.
Gradients gradients_of_part(Session& session, const Surroundings& before, const RegionBody& body,
                            const std::vector<Value>& inputs, std::span<const Tensor> incoming);

/// Before a function is traced its tensors are copied, which takes their memory for that moment (_from_fun).
void trace_on_copies(Session& session, std::span<const Tensor> tensors);

std::vector<Tensor> tensors_in(std::span<const Value> values);
/// Whether a function of these values is a node of the graph.
bool needs_gradients(const Session& session, std::span<const Value> values);

}  // namespace metaprof
