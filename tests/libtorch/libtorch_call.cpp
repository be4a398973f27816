#include "tests/libtorch/libtorch_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include "tests/libtorch/no_numbers.h"

namespace metaprof {
namespace {

c10::IValue number(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::integer: return value.integer();
    case Value::Kind::real: return value.real();
    case Value::Kind::boolean: return value.boolean();
    case Value::Kind::complex: return c10::complex<double>(value.reals()[0], value.reals()[1]);
    default: throw NoNumbers("a number was expected, got " + describe(value));
  }
}

template <class T, class Elements>
c10::IValue list_of(const Elements& elements) {
  c10::List<T> list;
  for (const auto& element : elements) list.push_back(T(element));
  return list;
}

c10::IValue list(const Argument& argument, const Value& value,
                 const std::function<at::Tensor(const Tensor&)>& tensor) {
  switch (value.kind()) {
    case Value::Kind::tensors: {
      if (argument.optional_elements) {
        c10::List<c10::optional<at::Tensor>> list;
        for (const Tensor& t : value.tensors())
          list.push_back(t.defined() ? c10::optional<at::Tensor>(tensor(t)) : c10::nullopt);
        return list;
      }
      c10::List<at::Tensor> list;
      for (const Tensor& t : value.tensors()) list.push_back(tensor(t));
      return list;
    }
    case Value::Kind::integers:
      if (argument.type == Type::real) return list_of<double>(value.integers());
      if (argument.type == Type::scalar) return list_of<c10::Scalar>(value.integers());
      if (argument.type == Type::boolean) return list_of<bool>(value.integers());
      return list_of<int64_t>(value.integers());
    case Value::Kind::reals:
      if (argument.type == Type::scalar) return list_of<c10::Scalar>(value.reals());
      return list_of<double>(value.reals());
    case Value::Kind::booleans: return list_of<bool>(value.booleans());
    case Value::Kind::integer:
      return list_of<int64_t>(
          std::vector<int64_t>(size_t(std::max<int64_t>(argument.length, 1)), value.integer()));
    case Value::Kind::real: return list_of<double>(std::vector<double>{value.real()});
    default: throw NoNumbers("a list was expected, got " + describe(value));
  }
}

// The first line of what libtorch says, without its stack trace.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// An argument that the older schema lacks may only have the value that it has when it is left out.
bool is_default(const Argument& argument, const c10::IValue& value) {
  static const auto no_tensor = [](const Tensor&) { return at::Tensor(); };
  if (value.isNone() || !argument.has_default) return value.isNone();
  const c10::IValue usual = to_ivalue(argument, argument.default_value, no_tensor);
  return usual.tagKind() == value.tagKind() && usual == value;
}

c10::OperatorHandle find_operator(const Operator& op) {
  const auto handle = c10::Dispatcher::singleton().findSchema({op.schema.name, op.schema.overload});
  if (!handle) throw NoNumbers(op.name + ": libtorch has no such operator");
  return *handle;
}

std::vector<c10::IValue> match_arguments(const Operator& op, const c10::FunctionSchema& schema,
                                         const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> stack;
  std::vector<bool> used(arguments.size(), false);
  for (const c10::Argument& wanted : schema.arguments()) {
    const int index = op.schema.find(name_hash(wanted.name()));
    if (index >= 0) {
      stack.push_back(arguments[size_t(index)]);
      used[size_t(index)] = true;
    } else if (wanted.default_value()) {
      stack.push_back(*wanted.default_value());
    } else {
      throw NoNumbers(fmt::format("{}: libtorch wants an argument '{}'", op.name, wanted.name()));
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!used[i] && !is_default(op.schema.arguments[i], arguments[i]))
      throw NoNumbers(fmt::format("{}: libtorch has no argument '{}'", op.name, op.schema.arguments[i].name));
  return stack;
}

}  // namespace

c10::IValue to_ivalue(const Argument& argument, const Value& value,
                      const std::function<at::Tensor(const Tensor&)>& tensor) {
  if (value.is_none())
    return argument.is_tensor() && !argument.optional ? c10::IValue(at::Tensor()) : c10::IValue();
  if (argument.list) return list(argument, value, tensor);
  switch (argument.type) {
    case Type::tensor: return tensor(value.tensor());
    case Type::scalar: return number(value);
    case Type::real: return value.real();
    case Type::boolean: return value.boolean();
    case Type::string: return value.string();
    case Type::device: return c10::Device(c10::kCPU);
    case Type::generator: return {};
    case Type::integer:
    case Type::dtype:
    case Type::layout:
    case Type::memory_format: return value.integer();
    default: throw NoNumbers(fmt::format("an argument '{}' cannot be handed to libtorch", argument.name));
  }
}

std::vector<c10::IValue> call_libtorch_with_autograd(const Operator& op,
                                                     const std::vector<c10::IValue>& arguments) {
  const c10::OperatorHandle handle = find_operator(op);
  std::vector<c10::IValue> stack = match_arguments(op, handle.schema(), arguments);
  handle.callBoxed(&stack);
  return stack;
}

std::vector<c10::IValue> call_libtorch(const Operator& op, const std::vector<c10::IValue>& arguments) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  try {
    if (const Recipe recipe = recipe_for(op.name)) return recipe(op, arguments);
    return call_libtorch_with_autograd(op, arguments);
  } catch (const c10::Error& error) {
    throw NoNumbers(op.name + ": " + first_line(error.what_without_backtrace()));
  } catch (const NoNumbers&) {
    throw;
  } catch (const std::exception& error) {
    throw NoNumbers(op.name + ": " + first_line(error.what()));
  }
}

}  // namespace metaprof
