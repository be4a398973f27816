#include "meta/session/check_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace metaprof {
namespace {

using Kind = Value::Kind;
using Kinds = uint16_t;

template <class... Kind>
constexpr Kinds bits(Kind... kinds) {
  return static_cast<Kinds>((0u | ... | (1u << static_cast<unsigned>(kinds))));
}

// A whole number stands for a number of any kind, as in Python; a list without elements for a list of any kind.
Kinds kinds_of_list(Type type) {
  switch (type) {
    case Type::tensor: return bits(Kind::tensors);
    case Type::integer: return bits(Kind::integers);
    case Type::boolean: return bits(Kind::booleans);
    case Type::real: return bits(Kind::reals, Kind::integers);
    case Type::scalar: return bits(Kind::reals, Kind::integers);
    default: return static_cast<Kinds>(~0u);
  }
}

Kinds kinds_of(Type type) {
  switch (type) {
    case Type::tensor: return bits(Kind::tensor);
    case Type::scalar: return bits(Kind::integer, Kind::real, Kind::boolean, Kind::complex);
    case Type::integer: return bits(Kind::integer, Kind::boolean);
    case Type::real: return bits(Kind::real, Kind::integer, Kind::boolean);
    case Type::boolean: return bits(Kind::boolean, Kind::integer);
    case Type::string: return bits(Kind::string);
    case Type::dtype:
    case Type::layout:
    case Type::memory_format: return bits(Kind::integer);
    case Type::device: return bits(Kind::device);
    case Type::generator: return bits(Kind::generator, Kind::none);
    default: return static_cast<Kinds>(~0u);
  }
}

Kinds kinds_of(const Argument& argument) {
  Kinds kinds = argument.list ? kinds_of_list(argument.type) : kinds_of(argument.type);
  if (argument.optional) kinds |= bits(Kind::none);
  // `Tensor[]`: each of them is looked at.
  if (argument.is_tensors() && !argument.optional_elements) kinds &= static_cast<Kinds>(~bits(Kind::tensors));
  return kinds;
}

std::string_view kind_wanted(const Argument& argument) {
  switch (argument.type) {
    case Type::tensor: return argument.list ? "a list of tensors" : "a tensor";
    case Type::scalar:
    case Type::real: return argument.list ? "a list of numbers" : "a number";
    case Type::integer: return argument.list ? "a list of integers" : "an integer";
    case Type::boolean: return argument.list ? "a list of booleans" : "a boolean";
    case Type::string: return "a string";
    case Type::device: return "a device";
    case Type::generator: return "a generator";
    default: return "an integer";  // dtypes, layouts and memory formats are numbers
  }
}

[[noreturn]] void refuse(const Session& session, const Operator& op, std::string_view message) {
  const std::string_view module = session.trace.text(session.module);
  if (module.empty()) fail("{}: {}", op.name, message);
  fail("{}: {} ({})", op.name, message, module);
}

// A long list is cut: a message is one line.
std::string shown(const Value& value) {
  constexpr size_t kLongest = 120;
  std::string text = describe(value);
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a character
  return text.substr(0, end) + "…";
}

// A value that is none of those that the argument takes as they are.
void convert(Session& session, const Operator& op, size_t i, Value& value) {
  const Argument& argument = op.schema.arguments[i];
  if (argument.is_tensor() && value.is_number()) return void(value = Value(session.wrapped_number(value)));
  if (argument.list && argument.type == Type::integer && value.kind() == Value::Kind::integer)
    return void(value = Value(Sizes(size_t(std::max<int64_t>(argument.length, 1)), value.integer())));
  const bool all_defined = value.is_tensors() && std::ranges::all_of(value.tensors(), &Tensor::defined);
  if (argument.is_tensors() && all_defined) return;
  // Their schemas have plain tensors for masks and lengths that there may not be.
  if (argument.is_tensor() && value.is_none() && op.name.ends_with("_attention_backward")) return;
  if (argument.type == Type::tensor && (value.is_none() || value.is_tensors()))
    refuse(session, op, fmt::format("no tensor is known for the argument '{}'", argument.name));
  refuse(
      session, op,
      fmt::format("the argument '{}' takes {}, got {}", argument.name, kind_wanted(argument), shown(value)));
}

}  // namespace

void check_arguments(Session& session, const Operator& op, std::span<Value> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!(kinds_of(op.schema.arguments[i]) >> static_cast<unsigned>(arguments[i].kind()) & 1))
      convert(session, op, i, arguments[i]);
}

}  // namespace metaprof
