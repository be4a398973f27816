#include "meta/session/call_in_trace.h"

namespace metaprof {

void add_tensor(Trace& trace, const Tensor& tensor) {
  TensorRecord& record = trace.tensors.emplace_back();
  if (!tensor.defined()) return;
  if (tensor.is_sparse()) {  // its values are the last of its parts
    trace.tensors.pop_back();
    return add_tensor(trace, Tensor(tensor->extra->parts.back()));
  }
  record.storage = tensor->storage ? tensor->storage->id : 0;
  record.shape = static_cast<uint32_t>(trace.numbers.size());
  record.dims = static_cast<uint8_t>(tensor.dim());
  record.dtype = tensor.dtype();
  record.on_host = tensor.device().is_cpu();
  record.requires_grad = tensor.requires_grad();
  trace.numbers.append(tensor.sizes().begin(), tensor.sizes().end());
}

}  // namespace metaprof
