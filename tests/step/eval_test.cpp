// What --mode eval makes of flags that the export has written down.

#include <gtest/gtest.h>

#include <algorithm>

#include "meta/platform/platform.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

// What a step in eval mode calls, of a program with this call; `mode`: a line of the program.
std::vector<std::string> calls_of(const std::string& mode, const std::string& call) {
  const std::string text = "metaprof program 1\n" + mode + R"(parameter w = %w: f32[1,8,1,1] grad
input x = %x: f32[4,8,6,6]
%h: f32[4,8,6,6] = aten::mul.Tensor(%x, %w)
%y: f32[4,8,6,6] = )" + call +
                           R"( drop %h
%loss: f32[] = aten::sum(%y) drop %y
loss = %loss
)";
  StepOptions options;
  options.mode = Mode::eval;
  const Trace trace = run_steps(parse_program(text, "eval"), platform_named("h200"), options);
  std::vector<std::string> names;
  for (const CallRecord& record : trace.calls) names.emplace_back(trace.text(record.op));
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr const char* kDropout = "aten::dropout(%h, 0.5, True)";

// F.dropout(x, 0.5) drops in eval mode, too; an export that was made in eval mode says so.
TEST(EvalMode, AnExportOfItMeansWhatItSays) {
  EXPECT_TRUE(has(calls_of("evaluation\n", kDropout), "aten::native_dropout"));
}

// Of an export in training mode the flag is the module's.
TEST(EvalMode, SwitchesDropoutOffInAnExportForTraining) {
  EXPECT_FALSE(has(calls_of("", kDropout), "aten::native_dropout"));
}

}  // namespace
}  // namespace metaprof
