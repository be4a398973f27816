#include "program/pt2/tensor.h"

#include <fmt/format.h>

#include "program/pt2/numbers.h"

namespace metaprof {
namespace {

constexpr size_t kMaxDimensions = 64;  // the framework's limit

// {"as_int": 4} or {"as_expr": {…}}: the number, or 0 and the index of an expression.
int64_t read_size(Json size, int32_t& expression, Pt2Context& context) {
  const auto [kind, value] = size.only_member();
  if (kind == "as_int") return value.integer();
  if (kind != "as_expr") size.reject(fmt::format("unknown kind of size, {}", kind));
  expression = context.expression(value);
  return 0;
}

void read_sizes(Json list, Sizes& sizes, std::vector<int32_t>& expressions, Pt2Context& context) {
  list.for_each([&](Json size) {
    int32_t expression = -1;
    if (sizes.size() == kMaxDimensions)
      list.reject(fmt::format("more than {} dimensions: the framework allows no more", kMaxDimensions));
    sizes.push_back(read_size(size, expression, context));
    if (expression < 0 && expressions.empty()) return;
    expressions.resize(sizes.size(), -1);
    expressions.back() = expression;
  });
  if (!expressions.empty()) expressions.resize(sizes.size(), -1);
}

TensorFacts read_tensor(Json entry, Pt2Context& context) {
  TensorFacts tensor;
  tensor.dtype = read_dtype(entry.at("dtype"));
  read_sizes(entry.at("sizes"), tensor.sizes, tensor.size_expressions, context);
  const Json strides = entry.at("strides");
  read_sizes(strides, tensor.strides, tensor.stride_expressions, context);
  if (tensor.strides.size() != tensor.sizes.size())
    strides.reject(fmt::format("{} strides for {} sizes", tensor.strides.size(), tensor.sizes.size()));
  if (const Json offset = entry.find("storage_offset"))
    tensor.offset = read_size(offset, tensor.offset_expression, context);
  if (const Json layout = entry.find("layout"); layout && read_layout(layout) != 0)
    layout.reject("a tensor of sparse layout: only strided tensors can be profiled");
  tensor.requires_grad = entry.at("requires_grad").boolean();
  if (const Json device = entry.find("device")) tensor.device = read_device(device);
  if (tensor.device == context.model_device) tensor.device.reset();
  return tensor;
}

}  // namespace

std::pair<const TensorFacts&, bool> tensor_of(Json entry, Pt2Context& context) {
  const auto [known, is_new] = context.tensors.try_emplace(entry.text());
  if (is_new) known->second = read_tensor(entry, context);
  return {known->second, is_new};
}

void read_symbolic_value(Json entry, ValueFacts& facts, Pt2Context& context) {
  const auto [kind, value] = entry.only_member();
  if (kind == "as_int") {
    facts.number = value.integer();
  } else if (kind == "as_bool") {
    facts.number = value.boolean();
  } else if (kind == "as_float") {
    facts.real = value.real();
  } else if (kind == "as_expr") {
    const Json hint = value.find("hint");
    if (hint && hint.only_member().first == "as_float") {
      facts.real = hint.only_member().second.real();
    } else {
      facts.number_expression = context.expression(value);
    }
  } else {
    entry.reject(fmt::format("unknown kind of symbolic value, {}", kind));
  }
}

}  // namespace metaprof
