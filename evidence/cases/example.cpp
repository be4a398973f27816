#include "evidence/cases/example.h"

#include "core/error.h"
#include "evidence/recordings/recorded_value.h"

namespace metaprof {
namespace {

Tensor make_tensor(Session& session, const RecordedTensor& recorded, bool gradients) {
  const Device device = recorded.on_host ? kHost : session.device;
  Tensor tensor = session.empty_strided(recorded.sizes, recorded.strides, recorded.dtype, device);
  tensor->requires_grad = gradients && is_differentiable(recorded.dtype);
  return tensor;
}

Value convert(Session& session, const RecordedValue& value, bool gradients) {
  switch (value.kind) {
    case RecordedValue::Kind::none: return {};
    case RecordedValue::Kind::tensor: return Value(make_tensor(session, value.tensor[0], gradients));
    case RecordedValue::Kind::boolean: return Value(value.integer != 0);
    case RecordedValue::Kind::integer: return Value(value.integer);
    case RecordedValue::Kind::real: return Value(value.real);
    case RecordedValue::Kind::complex: return Value::complex(value.real, value.imaginary);
    case RecordedValue::Kind::text: return Value(value.text);
    case RecordedValue::Kind::generator: return Value::generator();
    case RecordedValue::Kind::device: return Value(value.text.starts_with("cpu") ? kHost : session.device);
    case RecordedValue::Kind::list:
    case RecordedValue::Kind::other: break;
  }
  fail("a value of an example cannot be read: {}", value.text);
}

Value convert_list(Session& session, const Argument& argument, const RecordedValue& value, bool gradients) {
  if (argument.is_tensors()) {
    Value::Tensors tensors;
    for (const RecordedValue& element : value.list)
      tensors.push_back(convert(session, element, gradients).tensor());
    return Value(std::move(tensors));
  }
  if (argument.type == Type::boolean) {
    Value::Booleans booleans;
    for (const RecordedValue& element : value.list) booleans.push_back(element.integer != 0);
    return Value(std::move(booleans));
  }
  if (argument.type == Type::real || argument.type == Type::scalar) {
    Value::Reals reals;
    for (const RecordedValue& element : value.list)
      reals.push_back(element.kind == RecordedValue::Kind::real ? element.real
                                                                : static_cast<double>(element.integer));
    return Value(std::move(reals));
  }
  Sizes integers;
  for (const RecordedValue& element : value.list) integers.push_back(element.integer);
  return Value(integers);
}

}  // namespace

std::vector<Value> example_arguments(Session& session, const Operator& op, std::string_view text,
                                     bool gradients) {
  const std::vector<RecordedValue> parsed = parse_values(text, Storages::optional);
  if (parsed.size() > op.schema.arguments.size())
    fail("record of {}: example '{}' has more values than the schema arguments", op.name, text);
  std::vector<Value> arguments;
  for (size_t i = 0; i < parsed.size(); ++i) {
    const bool list = parsed[i].kind == RecordedValue::Kind::list;
    arguments.push_back(list ? convert_list(session, op.schema.arguments[i], parsed[i], gradients)
                             : convert(session, parsed[i], gradients));
  }
  return arguments;
}

}  // namespace metaprof
