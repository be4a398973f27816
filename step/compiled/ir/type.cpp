#include "step/compiled/ir/type.h"

#include <fmt/format.h>

#include <algorithm>

namespace metaprof::ir {
namespace {

constexpr struct {
  Type::Kind kind;
  std::string_view word;
} kWords[] = {
    {Type::Kind::tensor, "Tensor"},   {Type::Kind::tensors, "Tensor[]"}, {Type::Kind::integer, "int"},
    {Type::Kind::real, "float"},      {Type::Kind::boolean, "bool"},     {Type::Kind::scalar, "Scalar"},
    {Type::Kind::string, "str"},      {Type::Kind::integers, "int[]"},   {Type::Kind::reals, "float[]"},
    {Type::Kind::booleans, "bool[]"}, {Type::Kind::device, "Device"},    {Type::Kind::none, "None"},
    {Type::Kind::any, "Any"}};

std::string sizes_text(const TensorDetail& tensor) {
  std::string text = "[";
  for (int i = 0; i < *tensor.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool known = at < tensor.sizes.size() && tensor.sizes[at];
    text += (i ? "," : "") + (known ? std::to_string(*tensor.sizes[at]) : std::string("*"));
  }
  return text + "]";
}

std::string strides_text(const Sizes& strides) {
  std::string text = "(";
  for (size_t i = 0; i < strides.size(); ++i) text += (i ? "," : "") + std::to_string(strides[i]);
  return text + ")";
}

std::string detail_text(const TensorDetail& tensor) {
  std::string text;
  const auto add = [&](std::string_view word) { text += (text.empty() ? "" : " ") + std::string(word); };
  if (tensor.dtype || tensor.rank)
    add((tensor.dtype ? std::string(short_name(*tensor.dtype)) : "?") +
        (tensor.rank ? sizes_text(tensor) : "") + (tensor.strides ? strides_text(*tensor.strides) : ""));
  if (tensor.device) add(*tensor.device == DeviceType::cpu ? "cpu" : "cuda");
  if (tensor.requires_grad) add(*tensor.requires_grad ? "grad" : "no_grad");
  if (tensor.defined) add(*tensor.defined ? "defined" : "undefined");
  return text;
}

template <class T>
std::optional<T> agreed(const std::optional<T>& a, const std::optional<T>& b) {
  return a == b ? a : std::nullopt;
}

TensorDetail common_detail(const TensorDetail& a, const TensorDetail& b) {
  TensorDetail common;
  common.dtype = agreed(a.dtype, b.dtype);
  common.rank = agreed(a.rank, b.rank);
  common.strides = agreed(a.strides, b.strides);
  common.device = agreed(a.device, b.device);
  common.requires_grad = agreed(a.requires_grad, b.requires_grad);
  common.defined = agreed(a.defined, b.defined);
  if (common.rank && a.sizes.size() == b.sizes.size())
    for (size_t i = 0; i < a.sizes.size(); ++i) common.sizes.push_back(agreed(a.sizes[i], b.sizes[i]));
  return common;
}

}  // namespace

std::string_view word_of(Type::Kind kind) {
  return std::ranges::find(kWords, kind, [](const auto& row) { return row.kind; })->word;
}

std::optional<Type::Kind> kind_named(std::string_view word) {
  for (const auto& row : kWords)
    if (row.word == word) return row.kind;
  return std::nullopt;
}

std::string to_string(const Type& type) {
  const std::string detail = detail_text(type.tensor);
  return std::string(word_of(type.kind)) + (detail.empty() ? "" : "(" + detail + ")") +
         (type.optional ? "?" : "");
}

Type common_type(const Type& a, const Type& b) {
  if (a.kind != b.kind) return Type::Kind::any;
  Type common = a;
  common.optional = a.optional || b.optional;
  common.tensor = common_detail(a.tensor, b.tensor);
  return common;
}

}  // namespace metaprof::ir
