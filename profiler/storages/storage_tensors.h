#pragma once
// For each storage the tensor that shows it best: a result of the call that made it, else the first tensor
// that was seen of it. Null: none was seen.

#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

std::vector<const TensorRecord*> tensors_of_storages(const Trace& trace);

}  // namespace metaprof
