// Programs of all exports, as text and back: the text is the same, and so is the trace of a step.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "meta/platform/platform.h"
#include "meta/trace/text.h"
#include "program/pt2/pt2.h"
#include "program/text/text.h"
#include "step/compiled/ir/verify.h"
#include "step/step.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

std::vector<std::string> exports_in(const std::string& folder) {
  std::vector<std::string> files;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".pt2") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// The trace of a step; or what is wrong with it.
std::string trace_of(const Program& program, Precision precision) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.precision = precision;
  try {
    return to_text(run_steps(program, platform_named("h200"), options));
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_round_trip(const std::string& file) {
  SCOPED_TRACE(file);
  Program program;
  try {
    program = read_pt2(file);
  } catch (const Error&) {
    return;  // it is there to be refused (tests/frontend)
  }
  EXPECT_NO_THROW(verify(program));
  const std::string text = to_text(program);
  const Program parsed = parse_program(text, program.origin);
  ASSERT_EQ(to_text(parsed), text);
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::amp_bf16})
    ASSERT_TRUE(trace_of(parsed, precision) == trace_of(program, precision)) << to_string(precision);
}

TEST(ProgramText, ExportsComeBackAndRunInTheSameWay) {
  for (const char* folder : {"tests/data/models", "tests/data/programs"})
    for (const std::string& file : exports_in(folder)) expect_round_trip(file);
}

class AllExports : public ::testing::TestWithParam<std::filesystem::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AllExports);
INSTANTIATE_TEST_SUITE_P(Models, AllExports, ::testing::ValuesIn(whole_evidence("models")),
                         [](const auto&) { return "All"; });
INSTANTIATE_TEST_SUITE_P(Programs, AllExports, ::testing::ValuesIn(whole_evidence("programs")),
                         [](const auto&) { return "All"; });

TEST_P(AllExports, ComeBackAndRunInTheSameWay) {
  for (const std::string& file : exports_in(GetParam())) expect_round_trip(file);
}

// The most bytes that a step has at a time, its inputs included.
int64_t peak_of(const std::string& lines) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.mode = Mode::no_grad;
  const Program program = parse_program("metaprof program 1\n" + lines, "net.mp");
  const Trace trace = run_steps(program, platform_named("h200"), options);
  int64_t live = 0, peak = 0;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::alloc) live += trace.bytes(event.id).count;
    if (event.kind == Event::Kind::free) live -= trace.storages[event.id].bytes.count;
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(ProgramText, ValuesGoWhereTheProgramDropsThem) {
  const std::string begin = "input x = %x: f32[256]\n%a: f32[256] = aten::relu(%x)\n";  // 1 KiB each
  const std::string end = "output = %c\n";
  EXPECT_EQ(
      peak_of(begin + "%b: f32[256] = aten::neg(%a) drop %a\n%c: f32[256] = aten::neg(%b) drop %b\n" + end),
      3 * 1024)
      << "x, and a result with its argument";
  EXPECT_EQ(peak_of(begin + "%b: f32[256] = aten::neg(%a)\n%c: f32[256] = aten::neg(%b) drop %a, %b\n" + end),
            4 * 1024)
      << "a is held while c is computed";
}

// Programs may be written by anybody: one whose values are not there gets a message.
TEST(ProgramText, ATensorThatNothingMadeIsAnError) {
  const auto said = [](const std::string& lines) -> std::string {
    try {
      peak_of(lines);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(said("%y = mylib::f()\n%z: f32[2] = aten::relu(%y)\noutput = %z\n"),
            "aten::relu: no tensor is known for the argument 'self'");
  EXPECT_EQ(said("%y = mylib::f()\n%z: f32[2] = aten::cat([%y])\noutput = %z\n"),
            "aten::cat: no tensor is known for the argument 'tensors'");
  EXPECT_EQ(said("%z: f32[2] = aten::cat([None])\noutput = %z\n"),
            "aten::cat: no tensor is known for the argument 'tensors'");
}

// What an unknown operator is passed stands in the trace as what a known one is passed: a host tensor is one.
TEST(ProgramText, AnUnknownOperatorsHostTensorsAreOnTheHost) {
  StepOptions options;
  options.optimizer = "none";
  options.steps = 1;
  options.mode = Mode::no_grad;
  const Program program = parse_program(
      "metaprof program 1\ninput n = %n: i64[] on cpu\n%y: f32[4] = mylib::f(%n)\noutput = %y\n", "net.mp");
  const Trace trace = run_steps(program, platform_named("h200"), options);
  ASSERT_EQ(trace.calls.size(), 1u);
  EXPECT_TRUE(trace.calls[0].unmodelled);
  EXPECT_TRUE(trace.tensors[trace.calls[0].first_tensor].on_host);
  EXPECT_FALSE(trace.tensors[trace.calls[0].first_tensor + 1].on_host);
}

}  // namespace
}  // namespace metaprof
