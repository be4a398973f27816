// A step as torch.autograd.set_detect_anomaly(True) runs it.

#include <gtest/gtest.h>

#include <algorithm>

#include "meta/platform/platform.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

constexpr const char* kProgram = R"(metaprof program 1
parameter w = %w: f32[4,8] grad
input x = %x: f32[4,8]
%y: f32[4,8] = aten::mul.Tensor(%x, %w)
%loss: f32[] = aten::sum(%y) drop %y
loss = %loss
)";

int64_t calls_of(std::string_view name, bool anomaly) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.anomaly = anomaly;
  const Trace trace = run_steps(parse_program(kProgram, "anomaly"), platform_named("h200"), options);
  return std::ranges::count_if(trace.calls,
                               [&](const CallRecord& call) { return trace.text(call.op) == name; });
}

// Two gradients are handed on: that of the sum, and that of w by the product.
TEST(Anomaly, LooksThroughEveryGradientForNaN) {
  EXPECT_EQ(calls_of("aten::isnan", false), 0);
  EXPECT_EQ(calls_of("aten::isnan", true), 2);
  EXPECT_EQ(calls_of("aten::any", true), 2);
}

}  // namespace
}  // namespace metaprof
