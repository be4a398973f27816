// Captured programs as models: tests/data/captured/checkpoints.mp is what checkpoints.py beside it did.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kProgram = "tests/data/captured/checkpoints.mp";

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_captured_" + std::to_string(getpid()) + name;
}

TEST(CapturedProgram, IsComparedWithItsOwnRun) {
  const Outcome outcome = run_program("check " + kProgram + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  EXPECT_EQ(summary["recording"], "checkpoints");
  EXPECT_EQ(summary["phases"], 13);  // setup, and four of each of three steps
  EXPECT_EQ(summary["exact_phases"], 13);
  EXPECT_EQ(summary["peak_reserved_error"], 0.0);
  EXPECT_TRUE(summary["first_difference"].is_null()) << summary;
}

TEST(CapturedProgram, TheFirstRequestThatDiffersIsNamed) {
  const std::string file = temporary(".mp");
  ASSERT_EQ(run_program("profile " + kProgram + " --workspaces none --write-program " + file).exit_code, 0);
  std::string text = read_file(file);
  // The last results of the optimizer live on.
  const size_t call = text.find("_foreach_addcdiv_"), drop = text.find(" drop ", call);
  text.erase(drop, text.find('\n', drop) - drop);
  std::ofstream(file) << text;
  const Outcome outcome = run_program("check " + file + " --json -");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json summary = Json::parse(outcome.out)["summary"][0];
  ASSERT_FALSE(summary["first_difference"].is_null());
  // Eight temporaries of _foreach_sqrt; a weight of 256 times 256 floats or a bias of 256.
  EXPECT_TRUE(summary["first_difference"]["recorded"] == "- 262144" ||
              summary["first_difference"]["recorded"] == "- 1024")
      << summary;
}

TEST(CapturedProgram, TheTextThatIsWrittenIsTheSameAgain) {
  const std::string once = temporary("_once.mp"), twice = temporary("_twice.mp");
  ASSERT_EQ(run_program("profile " + kProgram + " --write-program " + once).exit_code, 0);
  ASSERT_EQ(run_program("profile " + once + " --write-program " + twice).exit_code, 0);
  EXPECT_EQ(read_file(once), read_file(twice));
}

TEST(CapturedProgram, StepsAreItsOwn) {
  expect_refusal("profile " + kProgram + " --clip-norm 1",
                 "--clip-norm: " + kProgram + " was captured from a run, whose steps are its own");
  expect_refusal("profile " + kProgram + " --steps 4",
                 "--steps 4: " + kProgram + " was captured from a run of 3 steps");
}

TEST(CapturedProgram, WithoutAMeasurementThereIsNothingToCompare) {
  const std::string file = temporary("_bare.mp");
  std::ofstream(file) << "metaprof program 1\ncaptured torch 2.11.0\nstep::phase(\"setup\", 0, -1)\n";
  expect_refusal("check " + file, file + ": has no measurement of its own: name one with --against");
}

TEST(CapturedProgram, IsSavedUnderANameThatSaysWhatItIs) {
  expect_refusal("run --save step.txt -- python train.py", "--save step.txt: the file's name ends in .mp");
}

}  // namespace
}  // namespace metaprof
