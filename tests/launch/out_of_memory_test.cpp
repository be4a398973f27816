// Runs in which memory ran out, or which something else ended.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/launch/recorded_run.h"

namespace metaprof {
namespace {

TEST_F(RecordingTest, OutOfMemoryNamesTheProgramsLine) {
  write(
      "process-7.jsonl",
      kProcess + kTorch + kDevice + phase("forward", 2, 7, 9) +
          R"({"row": "out_of_memory", "device": 0, "requested": 2000, "line": "/me/train.py:14", "function": "main", "phase": "forward", )"
          R"("step": 2, "module": "fc", "allocated_bytes": 7, "reserved_bytes": 8})" +
          "\n");
  // 8 + 2000 B; people count steps from 1.
  const std::string text = run_text(report(1), {});
  EXPECT_TRUE(text.starts_with("DOES NOT FIT h200: needs more than 2.0 KiB of 1000 B, margin 0 %\n")) << text;
  EXPECT_NE(
      text.find(
          "\nOut of memory in forward, step 3 of fc, /me/train.py:14: it asks for 2.0 KiB while 7 B are "
          "allocated and 8 B reserved\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\n   3  forward "), std::string::npos) << text;
}

// A row of a request that the device could not serve.
std::string out_of_memory(int requested) {
  return R"({"row": "out_of_memory", "device": 0, "requested": )" + std::to_string(requested) +
         R"(, "line": "/me/train.py:14", "function": "main", "phase": "forward", "step": 0, "module": "fc", )"
         R"("allocated_bytes": 7, "reserved_bytes": 8})"
         "\n";
}

TEST_F(RecordingTest, AProgramThatCaughtAnOutOfMemoryIsJudgedByWhatItDidSince) {
  const std::string tries = kProcess + kTorch + kDevice + phase("setup", 0, 5, 60) + out_of_memory(2000) +
                            phase("forward", 0, 7, 900, 0, 1) + out_of_memory(1500) +
                            phase("forward", 0, 7, 950, 0, 2);
  write("process-7.jsonl", tries + phase("forward", 0, 7, 400, 0, 2) + phase("backward", 0, 7, 500, 0, 2));
  const std::string text = run_text(report(), {});
  EXPECT_TRUE(text.starts_with("FITS h200: needs 500 B of 1000 B, margin 0 %; 500 B stay free\n")) << text;
  EXPECT_NE(text.find("it asks for 2.0 KiB while 7 B are allocated and 8 B reserved; the program went on\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("it asks for 1.5 KiB while 7 B are allocated and 8 B reserved; the program went on\n"
                "Since then at most 500 B are reserved: the verdict is of what the program settled on\n"),
      std::string::npos)
      << text;
  // No forward followed: it gave up.
  write("process-7.jsonl", tries + phase("after", 0, 7, 8, 0, 2));
  EXPECT_TRUE(run_text(report(), {}).starts_with("DOES NOT FIT h200: needs more than 1.5 KiB"));
}

TEST_F(RecordingTest, AProgramThatSomethingElseEndedDoesNotFit) {
  const std::string step =
      kProcess + kTorch + kDevice + phase("setup", 0, 5, 60) + phase("forward", 0, 7, 70);
  const auto first_line = [&](const std::string& rows, int status) {
    write("process-7.jsonl", step + rows);
    const RunReport found = report(status);
    EXPECT_FALSE(verdict_of(found, found.ranks.at(0)).fits);
    EXPECT_EQ(run_json(found).find("\"ended_by\": null"), std::string::npos);
    const std::string text = run_text(found, {});
    return text.substr(0, text.find('\n'));
  };
  const std::string rest = "until then, h200 needs 70 B of 1000 B, margin 0 %; 930 B stay free";
  EXPECT_EQ(first_line(R"({"row": "exception", "type": "ValueError", "text": "no", "line": "/me/boom.py:5", )"
                       R"("function": "f", "out_of_memory": false, "phase": "forward", "step": 0})"
                       "\n",
                       1),
            "ENDED BY ValueError in forward of step 1 (/me/boom.py:5): " + rest);
  EXPECT_EQ(first_line("", 3), "ENDED BY itself, with exit status 3: " + rest);
  // Memory that ran out is the reason, and says more.
  write("process-7.jsonl", step + out_of_memory(2000) +
                               R"({"row": "exception", "type": "OutOfMemoryError", "text": "", "line": "", )"
                               R"("function": "", "out_of_memory": true, "phase": "forward", "step": 0})"
                               "\n");
  EXPECT_TRUE(run_text(report(1), {}).starts_with("DOES NOT FIT h200: needs more than 2.0 KiB"));
}

TEST_F(RecordingTest, RanksAreInTheirOrder) {
  write("process-1.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 1, 1));
  std::string other = kProcess;
  other.replace(other.find("\"3\""), 3, "\"0\"");
  write("process-9.jsonl", other + kTorch + kDevice + phase("setup", 0, 2, 2));
  const RunReport found = report();
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_EQ(found.ranks[0].rank, 0);
  EXPECT_EQ(found.ranks[1].rank, 3);
}

}  // namespace
}  // namespace metaprof
