#include "meta/platform/files/workspace_table.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/json.h"
#include "meta/platform/workspace_question.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytesOfTable = 256u << 20;

using Integers = ConvolutionQuestion::Integers;

Integers list(const Json& row, std::string_view name) {
  Integers numbers;
  if (const Json value = row.find(name))
    value.for_each([&](const Json& n) { numbers.push_back(n.integer()); });
  return numbers;
}

Integers given_list(const Json& row, std::string_view name) {
  row.at(name);
  return list(row, name);
}

template <class Named>
bool find_named(const Json& row, std::string_view key, std::span<const Named> all,
                std::string_view (*name_of)(Named), Named& found) {
  const std::string name = row.at(key).string();
  for (Named one : all)
    if (name_of(one) == name) return found = one, true;
  return false;
}

// The question that a convolution's line answers; empty if it is of a type that nobody asks about.
std::string convolution_question(const Json& row) {
  ConvolutionQuestion q;
  if (!find_named<PlannedOp>(row, "op", kPlannedOps, to_string, q.op)) return {};
  const bool asked = find_named<DType>(row, "dtype", kPlannedDTypes, workspace_dtype_name, q.dtype);
  q.x = given_list(row, "x");
  q.w = given_list(row, "w");
  q.stride = given_list(row, "stride");
  q.padding = given_list(row, "padding");
  q.dilation = given_list(row, "dilation");
  q.x_strides = given_list(row, "x_stride");
  q.w_strides = given_list(row, "w_stride");
  q.y_strides = given_list(row, "y_stride");
  return asked ? to_text(q.plan()) : std::string();
}

std::string attention_question(const Json& row, bool backward) {
  const Integers bias = list(row, "bias"), q = given_list(row, "q_stride"), k = given_list(row, "k_stride"),
                 v = given_list(row, "v_stride"), o = given_list(row, "o_stride"),
                 grad = backward ? given_list(row, "do_stride") : Integers();
  const Json causal = row.find("causal"), dropout = row.find("dropout"), statistics = row.find("stats");
  AttentionPlan plan{.backward = backward,
                     .batch = row.at("b").integer(),
                     .heads = row.at("h").integer(),
                     .key_heads = row.at("hkv").integer(),
                     .query_length = row.at("sq").integer(),
                     .key_length = row.at("skv").integer(),
                     .width = row.at("d").integer(),
                     .value_width = row.at("dv").integer(),
                     .dtype = DType::f32,
                     .causal = causal && causal.boolean(),
                     .statistics = !statistics || statistics.boolean(),
                     .dropout = dropout ? dropout.real() : 0.0,
                     .bias = bias,
                     .q_strides = q,
                     .k_strides = k,
                     .v_strides = v,
                     .o_strides = o,
                     .grad_strides = grad};
  const bool asked = find_named<DType>(row, "dtype", kPlannedDTypes, workspace_dtype_name, plan.dtype);
  return asked ? to_text(plan) : std::string();
}

bool is_known(const std::string& op) {
  return op == "conv_fwd" || op == "conv_dgrad" || op == "conv_wgrad" || op == "sdpa_fwd" || op == "sdpa_bwd";
}

}  // namespace

WorkspaceTable::WorkspaceTable(const std::string& path, const std::string& device) {
  const std::string text = read_file(path, kMostBytesOfTable, "a table of workspaces");
  size_t line = 0, begin = 0, operations = 0;
  for (size_t end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    ++line;
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const JsonDocument document(one, fmt::format("{}:{}", path, line));
    const Json row = document.root();
    const std::string op = row.at("op").string();
    if (!is_known(op)) continue;
    ++operations;
    const Json size = row.at("workspace").find(device);
    if (!size) continue;  // null: the library has no plan
    const int64_t bytes = size.integer();
    if (bytes < 0) size.reject("expected a number of bytes");
    std::string question =
        op.starts_with("conv_") ? convolution_question(row) : attention_question(row, op == "sdpa_bwd");
    if (question.empty()) continue;
    const auto [known, added] = bytes_.emplace(std::move(question), bytes);
    if (!added && known->second != bytes)
      row.reject(
          fmt::format("the same operation has {} bytes in an earlier line, {} here", known->second, bytes));
  }
  if (operations == 0) fail("{}: no line describes a convolution or attention", path);
  if (bytes_.empty()) fail("{}: no line has a size for the device '{}'", path, device);
}

std::optional<int64_t> WorkspaceTable::find(const std::string& question) const {
  const auto row = bytes_.find(question);
  if (row == bytes_.end()) return {};
  return row->second;
}

std::optional<int64_t> WorkspaceTable::convolution(const ConvolutionPlan& plan, const Platform&) {
  return find(to_text(plan));
}

std::optional<int64_t> WorkspaceTable::attention(const AttentionPlan& plan, const Platform&) {
  return find(to_text(plan));
}

}  // namespace metaprof
