#include "core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace metaprof {
namespace {

std::string message_of(void (*action)()) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Error, SaysWhatItWasGiven) {
  EXPECT_STREQ(Error("model.pt2: not a zip archive").what(), "model.pt2: not a zip archive");
}

TEST(Error, FailFormatsItsMessage) {
  EXPECT_EQ(message_of([] { fail("{}: expected {} sizes, got {}", "conv2d", 4, 3); }),
            "conv2d: expected 4 sizes, got 3");
}

TEST(Error, TextFromAFileCannotBreakTheLine) {
  EXPECT_EQ(message_of([] { fail("unknown key '{}'", "a\nb\tc\x1b[31m\x7f"); }),
            "unknown key 'a\\nb\\tc\\x1b[31m\\x7f'");
}

TEST(Error, TextBeyondAsciiIsKept) { EXPECT_STREQ(Error("größe").what(), "größe"); }

TEST(Error, IsARuntimeError) { EXPECT_THROW(fail("stop"), std::runtime_error); }

}  // namespace
}  // namespace metaprof
