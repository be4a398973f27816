// Questions about workspaces as text: what a table's line answers, and what the helper that asks cuDNN reads.

#include "meta/platform/workspace_question.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr const char* kQuestion =
    "conv_dgrad|bf16|8,3,64,64,|16,3,3,3,|1,1,|2,2,|1,1,|12288,4096,64,1,|27,9,3,1,|69696,4356,66,1,";

TEST(WorkspaceQuestion, AConvolutionIsReadAsItWasWritten) {
  const ConvolutionQuestion question = parse_convolution(kQuestion);
  EXPECT_EQ(question.op, PlannedOp::conv_dgrad);
  EXPECT_EQ(question.dtype, DType::bf16);
  EXPECT_EQ(question.padding, (ConvolutionQuestion::Integers{2, 2}));
  EXPECT_EQ(question.y_strides[1], 4356);
  EXPECT_EQ(to_text(question.plan()), kQuestion);
}

TEST(WorkspaceQuestion, EveryOperationAndTypeHasAName) {
  ConvolutionQuestion question = parse_convolution(kQuestion);
  for (PlannedOp op : kPlannedOps) {
    for (DType dtype : kPlannedDTypes) {
      question.op = op;
      question.dtype = dtype;
      const ConvolutionQuestion again = parse_convolution(to_text(question.plan()));
      EXPECT_EQ(again.op, op);
      EXPECT_EQ(again.dtype, dtype);
    }
  }
}

std::string message_of(std::string text) {
  try {
    parse_convolution(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WorkspaceQuestion, WhatIsNoneIsRefused) {
  EXPECT_EQ(message_of("norm|bf16|"), "cuDNN is not asked about 'norm'");
  EXPECT_EQ(message_of("conv_fwd|int8|"), "cuDNN convolutions of int8 are not asked for");
  EXPECT_EQ(message_of("conv_fwd|fp32|8,x,"), "'x' is no number");
  EXPECT_EQ(message_of("conv_fwd|fp32|8,3,64,64,|16,3,3,3,"), "the question's lists do not fit each other");
}

}  // namespace
}  // namespace metaprof
