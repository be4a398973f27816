#include "meta/platform/workspace_table.h"

#include <fmt/format.h>

#include "core/append.h"
#include "core/error.h"
#include "formats/file.h"
#include "formats/json.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = 256u << 20;

constexpr std::string_view kConvolutionLists[] = {"x",        "w",        "stride",   "padding",
                                                  "dilation", "x_stride", "w_stride", "y_stride"};
constexpr std::string_view kAttentionSizes[] = {"b", "h", "hkv", "sq", "skv", "d", "dv"};
constexpr std::string_view kAttentionStrides[] = {"q_stride", "k_stride", "v_stride", "o_stride",
                                                  "do_stride"};

std::string_view name_of(PlannedOp op) {
  switch (op) {
    case PlannedOp::conv_fwd: return "conv_fwd";
    case PlannedOp::conv_dgrad: return "conv_dgrad";
    case PlannedOp::conv_wgrad: return "conv_wgrad";
  }
  return "";
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::f64: return "fp64";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default: return short_name(dtype);
  }
}

void add_numbers(std::string& key, std::span<const int64_t> numbers) {
  key += '|';
  for (int64_t number : numbers) append(key, "{},", number);
}

std::string key_of(const Json& row) {
  const std::string op = row.at("op").string();
  const auto lists = [&](std::string& key, std::span<const std::string_view> names) {
    for (std::string_view name : names) {
      key += '|';
      row.at(name).for_each([&](const Json& number) { append(key, "{},", number.integer()); });
    }
  };
  std::string key = fmt::format("{}|{}", op, row.at("dtype").string());
  if (op.starts_with("conv_")) {
    lists(key, kConvolutionLists);
    return key;
  }
  const bool backward = op == "sdpa_bwd";
  for (std::string_view name : kAttentionSizes) append(key, "|{}", row.at(name).integer());
  const Json causal = row.find("causal"), dropout = row.find("dropout"), stats = row.find("stats"),
             bias = row.find("bias");
  append(key, "|{}|{:g}|{}|", causal && causal.boolean(), dropout ? dropout.real() : 0.0,
         backward || !stats || stats.boolean());
  if (bias) bias.for_each([&](const Json& size) { append(key, "{},", size.integer()); });
  lists(key, std::span(kAttentionStrides).first(backward ? 5 : 4));
  return key;
}

bool is_known(const Json& row) {
  const std::string op = row.at("op").string();
  return op == "conv_fwd" || op == "conv_dgrad" || op == "conv_wgrad" || op == "sdpa_fwd" || op == "sdpa_bwd";
}

}  // namespace

std::string key_of(const ConvolutionPlan& plan) {
  std::string key = fmt::format("{}|{}", name_of(plan.op), name_of(plan.dtype));
  for (auto numbers : {plan.x, plan.w, plan.stride, plan.padding, plan.dilation, plan.x_strides,
                       plan.w_strides, plan.y_strides})
    add_numbers(key, numbers);
  return key;
}

std::string key_of(const AttentionPlan& plan) {
  std::string key = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{:g}|{}", plan.backward ? "sdpa_bwd" : "sdpa_fwd", name_of(plan.dtype),
      plan.batch, plan.heads, plan.key_heads, plan.query_length, plan.key_length, plan.width,
      plan.value_width, plan.causal, plan.dropout, plan.backward || plan.statistics);
  add_numbers(key, plan.bias);
  for (auto numbers : {plan.q_strides, plan.k_strides, plan.v_strides, plan.o_strides})
    add_numbers(key, numbers);
  if (plan.backward) add_numbers(key, plan.grad_strides);
  return key;
}

WorkspaceTable::WorkspaceTable(const std::string& path, const std::string& device) {
  const std::string text = read_file(path, kMostBytes, "a table of workspaces");
  size_t line = 0, begin = 0, operations = 0;
  for (size_t end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    ++line;
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const JsonDocument document(one, fmt::format("{}:{}", path, line));
    const Json row = document.root();
    if (!is_known(row)) continue;
    ++operations;
    const Json size = row.at("workspace").find(device);
    if (!size) continue;  // null: the library has no plan
    const int64_t bytes = size.integer();
    if (bytes < 0) size.reject("expected a number of bytes");
    const auto [known, added] = bytes_.emplace(key_of(row), bytes);
    if (!added && known->second != bytes)
      row.reject(
          fmt::format("the same operation has {} bytes in an earlier line, {} here", known->second, bytes));
  }
  if (operations == 0) fail("{}: no line describes a convolution or attention", path);
  if (bytes_.empty()) fail("{}: no line has a size for the device '{}'", path, device);
}

std::optional<int64_t> WorkspaceTable::find(const std::string& key) const {
  const auto row = bytes_.find(key);
  if (row == bytes_.end()) return {};
  return row->second;
}

std::optional<int64_t> WorkspaceTable::convolution(const ConvolutionPlan& plan, const DeviceProfile&) {
  return find(key_of(plan));
}

std::optional<int64_t> WorkspaceTable::attention(const AttentionPlan& plan, const DeviceProfile&) {
  return find(key_of(plan));
}

}  // namespace metaprof
