#include "meta/platform/files/workspace_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

constexpr const char* kFile = "tests/data/workspaces/three.jsonl";

ConvolutionPlan plan(PlannedOp op, std::span<const int64_t> stride) {
  static constexpr int64_t x[] = {8, 3, 64, 64}, w[] = {16, 3, 3, 3}, ones[] = {1, 1};
  static constexpr int64_t x_strides[] = {12288, 4096, 64, 1}, w_strides[] = {27, 9, 3, 1};
  static constexpr int64_t y_strides[] = {65536, 4096, 64, 1};
  return {.op = op,
          .x = x,
          .w = w,
          .stride = stride,
          .padding = ones,
          .dilation = ones,
          .x_strides = x_strides,
          .w_strides = w_strides,
          .y_strides = y_strides,
          .dtype = DType::f32};
}

constexpr int64_t kOnes[] = {1, 1}, kTwos[] = {2, 2};

TEST(WorkspaceTable, AnswersForItsDevice) {
  const Platform device = platform_named("h200");
  WorkspaceTable table(kFile, "h200");
  EXPECT_EQ(table.size(), 3u);  // the line about a norm is passed over
  EXPECT_EQ(table.convolution(plan(PlannedOp::conv_fwd, kOnes), device), 1024);
  EXPECT_EQ(table.convolution(plan(PlannedOp::conv_wgrad, kOnes), device), 0);
  WorkspaceTable other(kFile, "a100");
  EXPECT_EQ(other.convolution(plan(PlannedOp::conv_fwd, kOnes), platform_named("a100")), 2048);
  EXPECT_EQ(other.convolution(plan(PlannedOp::conv_wgrad, kOnes), platform_named("a100")), std::nullopt)
      << "null: no plan";
}

AttentionPlan attention(double dropout) {
  static constexpr int64_t query[] = {2048, 512, 64, 1}, key[] = {2048, 1024, 64, 1};
  return {.backward = false,
          .batch = 2,
          .heads = 4,
          .key_heads = 2,
          .query_length = 8,
          .key_length = 16,
          .width = 64,
          .value_width = 64,
          .dtype = DType::bf16,
          .causal = true,
          .statistics = true,
          .dropout = dropout,
          .bias = {},
          .q_strides = query,
          .k_strides = key,
          .v_strides = key,
          .o_strides = query,
          .grad_strides = {}};
}

TEST(WorkspaceTable, KnowsAttention) {
  const Platform device = platform_named("h200");
  WorkspaceTable table(kFile, "h200");
  EXPECT_EQ(table.attention(attention(0), device), 256);
  EXPECT_EQ(table.attention(attention(0.1), device), std::nullopt);
}

TEST(WorkspaceTable, KnowsNothingOfOtherOperations) {
  WorkspaceTable table(kFile, "h200");
  EXPECT_EQ(table.convolution(plan(PlannedOp::conv_fwd, kTwos), platform_named("h200")), std::nullopt);
}

std::string message_for(const std::string& text, const std::string& device = "h200") {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "workspaces.jsonl";
  std::ofstream(path) << text;
  try {
    WorkspaceTable table(path, device);
  } catch (const Error& error) {
    std::string message = error.what();
    return message.substr(message.find("workspaces.jsonl"));
  }
  return "no error";
}

TEST(WorkspaceTable, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(message_for(""), "workspaces.jsonl: no line describes a convolution or attention");
  EXPECT_EQ(message_for("{\"op\": \"norm\"}\n"),
            "workspaces.jsonl: no line describes a convolution or attention");
  std::string rows = read_file(kFile);
  EXPECT_EQ(message_for(rows, "t4"), "workspaces.jsonl: no line has a size for the device 't4'");
  const std::string first = rows.substr(0, rows.find('\n') + 1);
  std::string changed = first;
  changed.replace(changed.find("1024"), 4, "1025");
  EXPECT_EQ(message_for(first + changed),
            "workspaces.jsonl:2: the same operation has 1024 bytes in an earlier line, 1025 here");
  EXPECT_NE(message_for("{\"op\": \"conv_fwd\"}").find("workspaces.jsonl:1"), std::string::npos);
  EXPECT_NE(message_for("{").find("workspaces.jsonl:1"), std::string::npos);
  EXPECT_THROW(WorkspaceTable("tests/data/none.jsonl", "h200"), Error);
  EXPECT_THROW(WorkspaceTable("tests/data", "h200"), Error);
}

}  // namespace
}  // namespace metaprof
