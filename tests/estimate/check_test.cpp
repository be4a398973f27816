// What is said of a captured program whose run the engine does not repeat.

#include "estimate/compare/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "estimate/prepare/model.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

const std::string kProgram = "tests/data/captured/checkpoints.mp";

// The program with another text in it, in a file of its own.
std::string with_text(const std::string& before, const std::string& after) {
  std::string text = to_text(read_model(kProgram).program);
  const size_t at = text.find(before);
  EXPECT_NE(at, text.npos);
  text.replace(at, before.size(), after);
  std::string file = testing::TempDir() + "check_" + std::to_string(getpid()) + ".mp";
  std::ofstream(file) << text;
  return file;
}

TEST(NotRepeated, NothingOfARunThatIsEqual) { EXPECT_FALSE(not_repeated(read_model(kProgram))); }

TEST(NotRepeated, PhasesThatDifferAndThePeak) {
  // The peak of the first forward, 36541440 bytes, is not the largest of the run.
  const std::string file = with_text("36541440 ", "36541952 ");
  const std::optional<NotRepeated> found = not_repeated(read_model(file));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->text.starts_with(
      "the engine repeats 12 of 13 phases of the run that was captured; peak of allocated bytes: "))
      << found->text;
  EXPECT_TRUE(found->text.ends_with("; metaprof check names the first request that differs")) << found->text;
  EXPECT_EQ(found->error, 0);
}

TEST(NotRepeated, WhatTheEngineCannotRun) {
  const std::string file = with_text("device h200", "device nosuch");
  const std::optional<NotRepeated> found = not_repeated(read_model(file));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->text.starts_with("the engine cannot repeat the run that was captured: ")) << found->text;
  EXPECT_NE(found->text.find("nosuch"), found->text.npos) << found->text;
  EXPECT_TRUE(std::isinf(found->error));
}

}  // namespace
}  // namespace metaprof
