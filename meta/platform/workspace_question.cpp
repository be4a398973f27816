#include "meta/platform/workspace_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/append.h"
#include "core/error.h"

namespace metaprof {
namespace {

using Integers = ConvolutionQuestion::Integers;

void add_numbers(std::string& text, std::span<const int64_t> numbers) {
  text += '|';
  for (int64_t number : numbers) append(text, "{},", number);
}

std::string_view take(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

Integers integers(std::string_view text) {
  Integers out;
  while (!text.empty()) {
    const std::string_view word = take(text, ',');
    int64_t value = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), value).ec != std::errc())
      fail("'{}' is no number", word);
    out.push_back(value);
  }
  return out;
}

PlannedOp op_named(std::string_view name) {
  for (PlannedOp op : kPlannedOps)
    if (to_string(op) == name) return op;
  fail("cuDNN is not asked about '{}'", name);
}

DType planned_dtype_named(std::string_view name) {
  for (DType dtype : kPlannedDTypes)
    if (workspace_dtype_name(dtype) == name) return dtype;
  fail("cuDNN convolutions of {} are not asked for", name);
}

}  // namespace

std::string_view to_string(PlannedOp op) {
  switch (op) {
    case PlannedOp::conv_fwd: return "conv_fwd";
    case PlannedOp::conv_dgrad: return "conv_dgrad";
    case PlannedOp::conv_wgrad: return "conv_wgrad";
  }
  return "";
}

std::string_view workspace_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::f64: return "fp64";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default: return short_name(dtype);
  }
}

std::string to_text(const ConvolutionPlan& plan) {
  std::string text = fmt::format("{}|{}", to_string(plan.op), workspace_dtype_name(plan.dtype));
  for (auto numbers : {plan.x, plan.w, plan.stride, plan.padding, plan.dilation, plan.x_strides,
                       plan.w_strides, plan.y_strides})
    add_numbers(text, numbers);
  return text;
}

std::string to_text(const AttentionPlan& plan) {
  std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{:g}|{}", plan.backward ? "sdpa_bwd" : "sdpa_fwd",
                  workspace_dtype_name(plan.dtype), plan.batch, plan.heads, plan.key_heads, plan.query_length,
                  plan.key_length, plan.width, plan.value_width, plan.causal, plan.dropout,
                  plan.backward || plan.statistics);
  add_numbers(text, plan.bias);
  for (auto numbers : {plan.q_strides, plan.k_strides, plan.v_strides, plan.o_strides})
    add_numbers(text, numbers);
  if (plan.backward) add_numbers(text, plan.grad_strides);
  return text;
}

ConvolutionPlan ConvolutionQuestion::plan() const {
  return {.op = op,
          .x = x,
          .w = w,
          .stride = stride,
          .padding = padding,
          .dilation = dilation,
          .x_strides = x_strides,
          .w_strides = w_strides,
          .y_strides = y_strides,
          .dtype = dtype};
}

ConvolutionQuestion parse_convolution(std::string_view text) {
  ConvolutionQuestion q;
  q.op = op_named(take(text, '|'));
  q.dtype = planned_dtype_named(take(text, '|'));
  for (Integers* list :
       {&q.x, &q.w, &q.stride, &q.padding, &q.dilation, &q.x_strides, &q.w_strides, &q.y_strides})
    *list = integers(take(text, '|'));
  const size_t dims = q.x.size();
  if (dims < 4 || q.w.size() != dims || q.stride.size() != dims - 2 || q.padding.size() != dims - 2 ||
      q.dilation.size() != dims - 2 || q.x_strides.size() != dims || q.w_strides.size() != dims ||
      q.y_strides.size() != dims)
    fail("the question's lists do not fit each other");
  return q;
}

}  // namespace metaprof
