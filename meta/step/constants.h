#pragma once
// Tensors that a model's source makes of numbers whenever it runs, `torch.tensor(0.5)` or the list in
// `x[:, [0, 2]]`: torch.export lifts them out of the graph as constants.

#include "meta/program/program.h"

namespace metaprof {

/// An operator that takes index tensors.
bool is_indexing(std::string_view op);

/// The value is among the call's operands.
bool takes(const GraphNode& node, ValueId value);

/// True for a number, and for a list that only indexes: they are made on the host. Other lifted tensors are
/// held to be made on the device, as an exporter does not say where.
bool is_made_on_host(const Program& program, const ProgramInput& input);

}  // namespace metaprof
