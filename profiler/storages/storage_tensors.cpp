#include "profiler/storages/storage_tensors.h"

namespace metaprof {

std::vector<const TensorRecord*> tensors_of_storages(const Trace& trace) {
  std::vector<const TensorRecord*> best(trace.storages.size());
  std::vector<bool> is_result(trace.storages.size());
  for (const CallRecord& call : trace.calls) {
    for (uint32_t i = 0; i < uint32_t{call.inputs} + call.outputs; ++i) {
      const TensorRecord& tensor = trace.tensors[call.first_tensor + i];
      const bool result = i >= call.inputs;
      if (best[tensor.storage] && (!result || is_result[tensor.storage])) continue;
      best[tensor.storage] = &tensor;
      is_result[tensor.storage] = result;
    }
  }
  best[0] = nullptr;
  return best;
}

}  // namespace metaprof
