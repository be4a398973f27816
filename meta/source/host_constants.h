#pragma once
// Tensors that a model's source makes of numbers whenever it runs, `torch.tensor(0.5)` or the list in
// `x[:, [0, 2]]`: torch.export lifts them out of the graph as constants.

#include "meta/op/registry.h"
#include "meta/program/program.h"

namespace metaprof {

/// Puts those on the host that are made there: numbers, and lists that only index. Other lifted tensors are
/// held to be made on the device, as an exporter does not say where.
void find_host_constants(Program& program, const Registry& registry);

}  // namespace metaprof
