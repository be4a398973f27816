#pragma once
// Tensors that a model's source makes of numbers whenever it runs, `torch.tensor(0.5)` or the list in
// `x[:, [0, 2]]`: torch.export lifts them out of the graph as constants.

#include <set>

#include "meta/op/registry.h"
#include "meta/program/program.h"

namespace metaprof {

/// Numbers, and lists that only index: they are made on the host. Other lifted tensors are held to be made on
/// the device, as an exporter does not say where.
std::set<ValueId> made_on_host(const Program& program, const Registry& registry);

}  // namespace metaprof
