#pragma once
// Tensors that a model's source makes of numbers whenever it runs, `torch.tensor(0.5)` or the list in
// `x[:, [0, 2]]`: torch.export lifts them out of the graph as constants.

#include "meta/op/registry.h"
#include "program/program.h"

namespace metaprof {

/// Puts those on the host that are made there: lists that only index, and numbers unless the exporter says that they are
/// on the model's device (`torch.tensor(0.0, device=x.device)`, exported from a model that is not on the host). Other
/// lifted tensors are held to be made on the device.
/// `exported_on_host`: the model was, so that the exporter puts every number there.
void find_host_constants(Program& program, const Registry& registry, bool exported_on_host);

}  // namespace metaprof
