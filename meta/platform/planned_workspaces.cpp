#include "meta/platform/planned_workspaces.h"

#include <algorithm>

namespace metaprof {
namespace {

int64_t product(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// Channels vary fastest: N(D)HWC. Sizes of 1 have any stride.
bool channels_are_adjacent(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  return sizes[1] == 1 || strides[1] == 1;
}

}  // namespace

int64_t attention_frontend_bytes(const AttentionPlan& plan) {
  if (!plan.backward) return 0;
  return 4 * plan.batch * plan.heads * plan.query_length * (plan.width + 1);
}

template <class Ask>
std::optional<int64_t> PlannedWorkspaces::first_answer(const Ask& ask) {
  for (const auto& [source, planner] : planners_) {
    const std::optional<int64_t> bytes = ask(*planner);
    if (!bytes) continue;
    Answers& answers = counts_.answers[static_cast<size_t>(source)];
    ++answers.count;
    answers.bytes += *bytes;
    const std::pair size(*bytes, source);
    if (*bytes > 0 && std::find(sizes_.begin(), sizes_.end(), size) == sizes_.end()) sizes_.push_back(size);
    return bytes;
  }
  ++counts_.unanswered;
  return std::nullopt;
}

void PlannedWorkspaces::count_again(const Counts& begin, const Counts& end) {
  for (size_t i = 0; i < kWorkspaceSources; ++i) {
    counts_.answers[i].count += end.answers[i].count - begin.answers[i].count;
    counts_.answers[i].bytes += end.answers[i].bytes - begin.answers[i].bytes;
  }
  counts_.unanswered += end.unanswered - begin.unanswered;
}

int64_t PlannedWorkspaces::convolution(const ConvolutionPlan& plan, const Platform& platform) {
  return first_answer([&](WorkspacePlanner& planner) { return planner.convolution(plan, platform); })
      .value_or(0);
}

int64_t PlannedWorkspaces::attention(const AttentionPlan& plan, const Platform& platform) {
  return first_answer([&](WorkspacePlanner& planner) { return planner.attention(plan, platform); })
      .value_or(attention_frontend_bytes(plan));
}

std::optional<int64_t> WorkspaceRules::convolution(const ConvolutionPlan& plan, const Platform& platform) {
  // Without tensor cores of its type, and with one channel per group, nothing is copied.
  if (plan.dtype == DType::f64 || (plan.dtype == DType::f32 && platform.hardware.sm < 80) || plan.w[1] == 1)
    return 0;
  if (channels_are_adjacent(plan.x, plan.x_strides)) return 0;
  int64_t y = plan.x[0] * plan.w[0];
  for (size_t d = 2; d < plan.x.size(); ++d)
    y *= (plan.x[d] + 2 * plan.padding[d - 2] - plan.dilation[d - 2] * (plan.w[d] - 1) - 1) /
             plan.stride[d - 2] +
         1;
  return (product(plan.x) + product(plan.w) + y) * element_size(plan.dtype);
}

std::optional<int64_t> WorkspaceRules::attention(const AttentionPlan& plan, const Platform& platform) {
  if (!plan.backward) return platform.hardware.sm >= 90 ? 256 : 0;
  int64_t bytes = attention_frontend_bytes(plan) + (platform.hardware.sm >= 90 ? 256 : 128);
  if (platform.hardware.sm < 90)
    bytes += 4 * plan.batch * plan.heads * ((plan.query_length + 7) / 8 * 8) * plan.width;
  if (plan.key_heads != plan.heads)
    bytes += plan.batch * plan.heads * plan.key_length * (plan.width + plan.value_width) *
             element_size(plan.dtype);
  return bytes;
}

}  // namespace metaprof
