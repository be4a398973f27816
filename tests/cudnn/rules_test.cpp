// The stated rule for what neither a table nor the library says (meta/platform/planned_workspaces.h), against
// plans of cuDNN 9.19.

#include <gtest/gtest.h>

#include "meta/platform/planned_workspaces.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

AttentionPlan attention(bool backward, int64_t batch, int64_t heads, int64_t key_heads, int64_t length,
                        int64_t width) {
  return {.backward = backward,
          .batch = batch,
          .heads = heads,
          .key_heads = key_heads,
          .query_length = length,
          .key_length = length,
          .width = width,
          .value_width = width,
          .dtype = DType::bf16,
          .causal = true,
          .statistics = true,
          .dropout = 0,
          .bias = {},
          .q_strides = {},
          .k_strides = {},
          .v_strides = {},
          .o_strides = {},
          .grad_strides = {}};
}

TEST(WorkspaceRules, AttentionIsThatOfKnownPlans) {
  WorkspaceRules rules;
  const Platform h200 = platform_named("h200"), a100 = platform_named("a100");
  const AttentionPlan plain = attention(true, 8, 12, 12, 1024, 64);
  EXPECT_EQ(rules.attention(attention(false, 8, 12, 12, 1024, 64), h200), 256);
  EXPECT_EQ(rules.attention(attention(false, 8, 12, 12, 1024, 64), a100), 0);
  EXPECT_EQ(rules.attention(plain, h200), 25559296);  // 4·8·12·1024·65 + 256
  EXPECT_EQ(rules.attention(plain, a100), 50724992);  // … + 4·8·12·1024·64 + 128
  const AttentionPlan grouped = attention(true, 2, 32, 8, 4096, 128);
  EXPECT_EQ(rules.attention(grouped, h200), 269484288);  // 4·2·32·4096·129 + 2·2·32·4096·128·2 / 2 + 256
  EXPECT_EQ(rules.attention(grouped, a100), 403701888);
  EXPECT_EQ(rules.attention(attention(true, 16, 12, 12, 197, 64), a100), 19664768);  // 197 rows as 200
}

// Nobody is asked: the plan's own memory counts as 0, what the frontend adds to it is still known.
TEST(PlannedWorkspaces, WithoutAnswersTheFrontendsPartRemains) {
  PlannedWorkspaces nobody;
  const Platform h200 = platform_named("h200");
  EXPECT_EQ(nobody.attention(attention(true, 4, 12, 12, 512, 64), h200), 6389760);  // 4·4·12·512·(64 + 1)
  EXPECT_EQ(nobody.attention(attention(false, 4, 12, 12, 512, 64), h200), 0);
  EXPECT_EQ(nobody.counts().unanswered, 2);
}

ConvolutionPlan convolution(std::span<const int64_t> x_strides, std::span<const int64_t> w, DType dtype) {
  static constexpr int64_t x[] = {2, 8, 10, 10}, ones[] = {1, 1};
  return {.op = PlannedOp::conv_fwd,
          .x = x,
          .w = w,
          .stride = ones,
          .padding = ones,
          .dilation = ones,
          .x_strides = x_strides,
          .w_strides = {},
          .y_strides = {},
          .dtype = dtype};
}

TEST(WorkspaceRules, RowMajorOperandsAreCopied) {
  static constexpr int64_t rows[] = {800, 100, 10, 1}, last[] = {800, 1, 80, 8}, w[] = {4, 8, 3, 3},
                           depthwise[] = {8, 1, 3, 3};
  WorkspaceRules rules;
  const Platform h200 = platform_named("h200"), t4 = platform_named("t4");
  // x 2·8·100 + w 4·8·9 + y 2·4·100 elements.
  EXPECT_EQ(rules.convolution(convolution(rows, w, DType::f32), h200), (1600 + 288 + 800) * 4);
  EXPECT_EQ(rules.convolution(convolution(rows, w, DType::bf16), h200), (1600 + 288 + 800) * 2);
  EXPECT_EQ(rules.convolution(convolution(last, w, DType::f32), h200), 0);
  EXPECT_EQ(rules.convolution(convolution(rows, depthwise, DType::f32), h200), 0);
  EXPECT_EQ(rules.convolution(convolution(rows, w, DType::f32), t4), 0) << "no tensor cores for fp32";
}

TEST(PlannedWorkspaces, SourcesAreAskedInOrder) {
  static constexpr int64_t last[] = {800, 1, 80, 8}, w[] = {4, 8, 3, 3};
  PlannedWorkspaces workspaces;
  EXPECT_EQ(workspaces.convolution(convolution(last, w, DType::f32), platform_named("h200")), 0);
  workspaces.add(WorkspaceSource::rule, std::make_unique<WorkspaceRules>());
  EXPECT_EQ(workspaces.attention(attention(false, 1, 1, 1, 8, 8), platform_named("h200")), 256);
  EXPECT_EQ(workspaces.answers(WorkspaceSource::rule).bytes, 256);
  EXPECT_EQ(workspaces.answers(WorkspaceSource::rule).count, 1)
      << "the first question was before there was one";
  EXPECT_EQ(workspaces.answers(WorkspaceSource::table).count, 0);
}

}  // namespace
}  // namespace metaprof
