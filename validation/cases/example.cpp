#include "validation/cases/example.h"

#include "core/error.h"
#include "validation/cases/recorded_argument.h"

namespace metaprof {
namespace {

Tensor make_tensor(Session& session, const RecordedTensor& recorded, bool gradients) {
  const Device device = recorded.on_host ? kHost : session.device;
  Tensor tensor;
  if (recorded.parts.empty()) {
    tensor = session.empty_strided(recorded.sizes, recorded.strides, recorded.dtype, device);
  } else {
    tensor =
        Tensor(new TensorImpl(recorded.sizes, contiguous_strides(recorded.sizes), recorded.dtype, device));
    tensor->layout = recorded.layout == "csr" ? Layout::sparse_csr : Layout::sparse;
    tensor->storage = session.allocate(device, 0);
    for (const RecordedTensor& part : recorded.parts)
      tensor->ensure_extra().parts.push_back(make_tensor(session, part, false));
  }
  tensor->requires_grad = gradients && is_differentiable(recorded.dtype);
  return tensor;
}

}  // namespace

std::vector<Value> example_arguments(Session& session, const Operator& op, std::string_view text,
                                     bool gradients) {
  const std::vector<RecordedValue> parsed = parse_values(text, Storages::optional);
  if (parsed.size() > op.schema.arguments.size())
    fail("record of {}: example '{}' has more values than the schema arguments", op.name, text);
  std::vector<Value> arguments;
  for (size_t i = 0; i < parsed.size(); ++i)
    arguments.push_back(recorded_argument(
        op.schema.arguments[i], parsed[i], session.device,
        [&](const RecordedTensor& recorded) { return make_tensor(session, recorded, gradients); }));
  return arguments;
}

}  // namespace metaprof
