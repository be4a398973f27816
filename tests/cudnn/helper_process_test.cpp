#include "meta/platform/cudnn/helper_process.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

TEST(HelperProcess, AnswersLines) {
  HelperProcess cat({"/bin/cat"});
  ASSERT_TRUE(cat.running());
  EXPECT_TRUE(cat.send("one"));
  EXPECT_TRUE(cat.send("two"));
  EXPECT_EQ(cat.receive(10), "one");
  EXPECT_EQ(cat.receive(10), "two");
}

TEST(HelperProcess, AProcessThatTakesTooLongIsStopped) {
  HelperProcess silent({"/bin/sleep", "1000"});
  ASSERT_TRUE(silent.running());
  EXPECT_EQ(silent.receive(0.05), std::nullopt);
  EXPECT_FALSE(silent.running());
  EXPECT_FALSE(silent.send("anything"));
}

TEST(HelperProcess, AProcessThatEndsAnswersNothing) {
  HelperProcess brief({"/bin/true"});
  EXPECT_EQ(brief.receive(10), std::nullopt);
  EXPECT_FALSE(brief.running());
}

TEST(HelperProcess, AnEndlessLineIsNotCollected) {
  HelperProcess endless(
      {"/bin/sh", "-c", "while :; do printf 0123456789012345678901234567890123456789; done"});
  EXPECT_EQ(endless.receive(30), std::nullopt);
  EXPECT_FALSE(endless.running());
}

TEST(HelperProcess, AProgramThatIsNotThereDoesNotRun) {
  HelperProcess none({"/nowhere/program"});
  EXPECT_FALSE(none.send("anything"));
  EXPECT_EQ(none.receive(10), std::nullopt);
}

}  // namespace
}  // namespace metaprof
