#include "program/torchscript/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "meta/op/registry.h"
#include "meta/ops/all.h"

namespace metaprof::script {
namespace {

using Overloads = std::vector<const Operator*>;

// By the name without the overload, in the order of the records.
const Overloads* overloads_of(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string, Overloads> by_name;
    for (const auto& op : standard_registry().operators()) by_name[op->schema.name].push_back(op.get());
    return by_name;
  }();
  const auto found = kByName.find(fmt::format("aten::{}", name));
  return found == kByName.end() ? nullptr : &found->second;
}

bool is_single(const Item& item, Type type) {
  switch (type) {
    case Type::tensor: return item.is_tensor();
    case Type::scalar: return item.is_number();
    case Type::integer:
    case Type::dtype:
    case Type::layout:
    case Type::memory_format: return item.is_integer();
    case Type::real: return item.is<double>() || item.is_integer();
    case Type::boolean: return item.is<bool>();
    case Type::string: return item.is<std::string>();
    case Type::device: return item.is<Device>();
    default: return false;
  }
}

bool takes(const Argument& argument, const Item& item) {
  if (item.is_none()) return argument.optional;
  if (!argument.list) return is_single(item, argument.type);
  // int[2]: one number stands for both
  if (!item.is_sequence()) return argument.length > 0 && is_single(item, argument.type);
  return std::ranges::all_of(item.elements(), [&](const Item& element) {
    return element.is_none() ? argument.optional_elements : is_single(element, argument.type);
  });
}

// Per argument of the schema what it is given; null: its default. Nothing: the overload does not take the call.
std::optional<std::vector<const Item*>> matched(const Operator& op, std::span<const GivenArgument> given) {
  const std::vector<Argument>& arguments = op.schema.arguments;
  std::vector<const Item*> items(arguments.size(), nullptr);
  for (size_t i = 0; i < given.size(); ++i) {
    const int at = op.schema.place_of(given[i].name, i);
    if (at < 0 || static_cast<size_t>(at) >= arguments.size()) return std::nullopt;
    const auto place = static_cast<size_t>(at);
    if (items[place] ||
        (given[i].name.empty() && arguments[place].keyword_only && !arguments[place].has_default))
      return std::nullopt;
    if (!takes(arguments[place], given[i].item)) return std::nullopt;
    items[place] = &given[i].item;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!items[i] && !arguments[i].has_default) return std::nullopt;
  return items;
}

nn::Tensor tensor_of(const Item& item) { return item.is_tensor() ? item.as<nn::Tensor>() : nn::Tensor(); }

Value value_of_list(const Argument& argument, const Item& item) {
  std::vector<Item> elements;
  if (item.is_sequence())
    elements = item.elements();
  else
    elements.assign(static_cast<size_t>(argument.length), item);
  if (argument.type == Type::real || argument.type == Type::scalar) {
    Value::Reals reals;
    for (const Item& element : elements) reals.push_back(element.real());
    return Value(std::move(reals));
  }
  if (argument.type == Type::boolean) {
    Value::Booleans booleans;
    for (const Item& element : elements) booleans.push_back(static_cast<char>(element.integer()));
    return Value(std::move(booleans));
  }
  Sizes integers;
  for (const Item& element : elements) integers.push_back(element.integer());
  return Value(integers);
}

nn::Argument argument_of(const Argument& argument, const Item* item) {
  if (!item) return nn::Argument(argument.default_value);
  if (item->is_none()) return nn::Argument(std::nullopt);
  if (argument.list && argument.type == Type::tensor) {
    std::vector<nn::Tensor> tensors;
    for (const Item& element : item->elements()) tensors.push_back(tensor_of(element));
    return nn::Argument(std::move(tensors));
  }
  if (argument.list) return nn::Argument(value_of_list(argument, *item));
  if (item->is_tensor()) return nn::Argument(item->as<nn::Tensor>());
  if (item->is<nn::DTypeOf>()) return nn::Argument(item->as<nn::DTypeOf>());
  if (item->is<Device>()) return nn::Argument(Value(item->as<Device>()));
  if (item->is<std::string>()) return nn::Argument(Value(item->as<std::string>()));
  if (item->is<bool>()) return nn::Argument(Value(item->as<bool>()));
  if (argument.type == Type::real) return nn::Argument(Value(item->real()));
  if (item->is<double>()) return nn::Argument(Value(item->as<double>()));
  return nn::Argument(Value(item->integer()));
}

Item item_of(std::vector<nn::Tensor> results, const Schema& schema) {
  if (schema.returns.empty()) return {};
  std::vector<Item> items;
  items.reserve(results.size());
  for (nn::Tensor& result : results) items.push_back(result.defined() ? Item(std::move(result)) : Item());
  if (schema.returns[0].is_tensors()) return Item::list(std::move(items));
  if (items.size() == 1) return items[0];
  return Item::tuple(std::move(items));
}

Item called(nn::Recording& recording, const Operator& op, const std::vector<const Item*>& items) {
  for (const Argument& result : op.schema.returns)
    if (result.type != Type::tensor)
      fail(
          "{} returns the value of a tensor, and no tensor has values; give what decides as a number, or "
          "save the "
          "model without it",
          op.name);
  std::vector<nn::Argument> arguments;
  for (size_t i = 0; i < items.size(); ++i)
    arguments.push_back(argument_of(op.schema.arguments[i], items[i]));
  return item_of(recording.call(op.name.substr(std::string_view("aten::").size()), arguments), op.schema);
}

// torch.tensor(number, dtype=…, device=…): made on the host, then converted and copied (castTensorTo of
// torch/csrc/jit/runtime/register_special_ops.cpp).
Item tensor_of_number(nn::Recording& recording, std::span<const GivenArgument> given) {
  const auto named = [&](std::string_view name) {
    const auto found = std::ranges::find(given, name, &GivenArgument::name);
    return found == given.end() ? Item() : found->item;
  };
  const Item number = given.empty() ? Item() : given[0].item;
  if (!number.is_number()) fail("torch.tensor: of a number only, got {}", number.kind());
  const DType own = number.is<bool>() ? DType::b8 : number.is<double>() ? DType::f32 : DType::i64;
  const GivenArgument made[] = {
      {"", number}, {"dtype", static_cast<int64_t>(own)}, {"device", Device{DeviceType::cpu}}};
  Item tensor = call_operator(recording, "scalar_tensor", made);
  if (const Item dtype = named("dtype"); dtype.is_integer() && dtype.integer() != static_cast<int64_t>(own)) {
    const GivenArgument converted[] = {{"", tensor}, {"dtype", dtype}};
    tensor = call_operator(recording, "to", converted);
  }
  if (const Item device = named("device"); device.is<Device>() && device.as<Device>().is_cuda()) {
    const GivenArgument copied[] = {
        {"", tensor}, {"device", device}, {"dtype", tensor.as<nn::Tensor>().dtype()}};
    tensor = call_operator(recording, "to", copied);
  }
  return tensor;
}

// What torch.jit.trace writes for a convolution: aten::convolution with four flags of cuDNN behind its arguments.
constexpr size_t kArgumentsOfConvolution = 9;

std::string kinds_of(std::span<const GivenArgument> given) {
  std::string kinds;
  for (const GivenArgument& argument : given)
    kinds += fmt::format("{}{}{}{}", kinds.empty() ? "" : ", ", argument.name,
                         argument.name.empty() ? "" : "=", argument.item.kind());
  return kinds;
}

}  // namespace

Item call_operator(nn::Recording& recording, std::string_view name, std::span<const GivenArgument> given) {
  if (name == "tensor") return tensor_of_number(recording, given);
  if (name == "_convolution")
    return call_operator(recording, "convolution",
                         given.first(std::min(given.size(), kArgumentsOfConvolution)));
  const Overloads* overloads = overloads_of(name);
  if (!overloads) fail("there is no operator 'torch.{}' (metaprof ops lists those that there are)", name);
  for (const Operator* op : *overloads)
    if (const auto items = matched(*op, given)) return called(recording, *op, *items);
  fail("no overload of torch.{} takes ({})", name, kinds_of(given));
}

}  // namespace metaprof::script
