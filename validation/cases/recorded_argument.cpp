#include "validation/cases/recorded_argument.h"

#include "core/error.h"

namespace metaprof {
namespace {

using MakeTensor = std::function<Tensor(const RecordedTensor&)>;

Value list_for(const Argument& argument, const std::vector<RecordedValue>& list, const MakeTensor& tensor) {
  switch (argument.type) {
    case Type::tensor: {
      Value::Tensors tensors;
      for (const RecordedValue& element : list)
        tensors.push_back(element.tensor.empty() ? Tensor() : tensor(element.tensor[0]));
      return Value(std::move(tensors));
    }
    case Type::boolean: {
      Value::Booleans booleans;
      for (const RecordedValue& element : list) booleans.push_back(element.integer != 0);
      return Value(std::move(booleans));
    }
    case Type::real:
    case Type::scalar: {
      Value::Reals reals;
      for (const RecordedValue& element : list)
        reals.push_back(element.kind == RecordedValue::Kind::real ? element.real
                                                                  : static_cast<double>(element.integer));
      return Value(std::move(reals));
    }
    default: {
      Sizes integers;
      for (const RecordedValue& element : list) integers.push_back(element.integer);
      return Value(integers);
    }
  }
}

}  // namespace

Value recorded_argument(const Argument& argument, const RecordedValue& value, Device device,
                        const MakeTensor& tensor) {
  using Kind = RecordedValue::Kind;
  switch (value.kind) {
    case Kind::none: return {};
    case Kind::tensor: return Value(tensor(value.tensor[0]));
    case Kind::boolean: return Value(value.integer != 0);
    case Kind::integer: return Value(value.integer);
    case Kind::real: return Value(value.real);
    case Kind::complex: return Value::complex(value.real, value.imaginary);
    case Kind::text: return Value(value.text);
    case Kind::list: return list_for(argument, value.list, tensor);
    case Kind::device: return Value(value.text.starts_with("cpu") ? kHost : device);
    case Kind::generator: return Value::generator();
    case Kind::other: break;
  }
  fail("'{}' is no value that an operator takes", value.text);
}

}  // namespace metaprof
