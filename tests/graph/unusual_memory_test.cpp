// Steps compiled as two graphs, with memory that none of their calls makes.

#include <gtest/gtest.h>

#include "estimate/compiled/cudagraphs.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

CudagraphsReport captured(const char* text) {
  CudagraphsOptions options;
  options.run.workspaces = "none";
  options.run.step.optimizer = "none";
  return cudagraphs(model_of(parse_program(text, "model.mp")), options);
}

TEST(UnusualMemory, WhatIsWrittenToTheHostBelongsToNoGraph) {
  const CudagraphsReport report = captured(R"(metaprof program 1
parameter w = %w: f32[2,3] grad
buffer h = %h: f32[4] on cpu
aten::_foreach_asin_([%h, %w])
%loss = aten::sum(%w)
loss = %loss
)");
  EXPECT_TRUE(report.tree.has_value());
}

// A branch that was computed for its gradients alone.
TEST(UnusualMemory, AGradientThatNoCallMakesIsAllocated) {
  const CudagraphsReport report = captured(R"(metaprof program 1
parameter w = %w: f32[16,16] grad
input x = %x: f32[8,16]
input yes = %yes: b8[]
graph {
  input %xi: f32[8,16]
  input %wi: f32[16,16]
  %y: f32[8,16] = aten::mm(%xi, %wi)
  return %y
} as g0
graph {
  input %xi: f32[8,16]
  input %wi: f32[16,16]
  %y: f32[8,16] = aten::sin(%xi)
  return %y
} as g1
%r: f32[8,16] = higher_order::cond(%yes, graph(g0), graph(g1), [%x, %w])
%mean: f32[] = aten::mean(%r) drop %r
output = %mean
)");
  ASSERT_TRUE(report.tree.has_value());
  EXPECT_EQ(report.tree->counters.recordings, 2);
}

}  // namespace
}  // namespace metaprof
