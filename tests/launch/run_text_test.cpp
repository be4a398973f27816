// What the text of a run says of its phases, of its peak and of what may help.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "capture/launch/both_answers.h"
#include "capture/launch/fixes.h"
#include "capture/launch/peak.h"
#include "tests/launch/recorded_run.h"

namespace metaprof {
namespace {

TEST_F(RecordingTest, WhatAProgramDoesBesidesIsPartOfThePhasesOfItsSteps) {
  write("process-7.jsonl",
        kProcess + kTorch + kDevice + phase("setup", 0, 5, 6) + named("load", "setup", 0, 8, 20) +
            phase("setup", 0, 7, 9) + named("evaluate", "forward", 0, 7, 60) + phase("forward", 0, 10, 12) +
            phase("backward", 0, 1, 12) + phase("forward", 0, 10, 12) + phase("backward", 0, 1, 12));
  const auto device = read_processes(folder_).at(0).devices.at(0);
  const auto rows = rows_by_phase(device.phases);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].numbers.allocated_bytes.current, 7);
  EXPECT_EQ(rows[0].numbers.allocated_bytes.peak, 20);
  EXPECT_EQ(rows[1].name, "forward");
  EXPECT_EQ(rows[1].numbers.allocated_bytes.peak, 60);
  EXPECT_EQ(rows[1].micro, 0);
  EXPECT_EQ(rows[3].micro, 1);
  const std::string text = run_text(report(), {});
  EXPECT_NE(text.find("   1      1  evaluate             7    60"), text.npos) << text;
  EXPECT_NE(
      text.find("\nMost memory is taken in evaluate, step 1: 60 B are allocated there, and 12 B at most "
                "elsewhere (forward, step 1)\n"),
      text.npos)
      << text;
}

// Steps of a forward and a backward: `steps` equal ones after two others.
std::string equal_steps(int steps) {
  std::string rows = phase("setup", 0, 5, 6) + phase("forward", 0, 6, 7) + phase("backward", 0, 6, 7) +
                     phase("forward", 1, 7, 8) + phase("backward", 1, 7, 8);
  for (int i = 2; i < steps + 2; ++i) rows += phase("forward", i, 8, 9) + phase("backward", i, 8, 9);
  return kProcess + kTorch + kDevice + rows;
}

TEST_F(RecordingTest, EqualStepsAreOneRow) {
  write("process-7.jsonl", equal_steps(38));
  const std::string text = run_text(report(), {});
  EXPECT_NE(text.find("\n   step  phase     allocated, B  peak"), text.npos) << text;
  EXPECT_NE(text.find("\n      2  backward             7     8"), text.npos) << text;
  EXPECT_NE(text.find("\n3 to 40  forward              8     9"), text.npos) << text;
  EXPECT_NE(text.find("\n3 to 40  backward             8     9"), text.npos) << text;
}

TEST_F(RecordingTest, EqualMicroBatchesAreOneRow) {
  std::string rows = kProcess + kTorch + kDevice;
  for (int i = 0; i < 8; ++i) rows += phase("forward", 0, 8, i == 0 ? 10 : 9) + phase("backward", 0, 8, 9);
  write("process-7.jsonl", rows + phase("optimizer", 0, 8, 9));
  const std::string text = run_text(report(), {});
  EXPECT_NE(text.find("\n   1       1  forward               8    10"), text.npos) << text;
  EXPECT_NE(text.find("\n   1  2 to 8  forward               8     9"), text.npos) << text;
  EXPECT_NE(text.find("\n   1          optimizer             8     9"), text.npos) << text;
  EXPECT_EQ(text.find("Memory does not grow"), text.npos) << "one step";
}

TEST_F(RecordingTest, ABriefTableOfPhasesHasThatOfThePeak) {
  std::string rows = kProcess + kTorch + kDevice + phase("setup", 0, 5, 6);
  for (int i = 0; i < 50; ++i) rows += phase("forward", i, 8 + i, i == 30 ? 900 : 100 + i);
  write("process-7.jsonl", rows);
  const RunReport found = report();
  EXPECT_EQ(run_text(found, {}).find("more rows"), std::string::npos);
  TextOptions brief;
  brief.brief = true;
  const std::string text = run_text(found, brief);
  EXPECT_NE(text.find("\n  31  forward            38   900"), text.npos) << text;
  EXPECT_NE(text.find("\n  50  forward            57   149"), text.npos) << text;
  EXPECT_EQ(text.find("\n  30  forward"), text.npos) << text;
  EXPECT_NE(text.find("\n42 more rows are not shown (--all)\n"), text.npos) << text;
}

TEST_F(RecordingTest, MemoryThatDoesNotGrowIsSaid) {
  write("process-7.jsonl", equal_steps(3));
  EXPECT_NE(
      run_text(report(), {}).find("\nMemory does not grow: 8 B are allocated after each of steps 3 to 5\n"),
      std::string::npos);
  EXPECT_NE(run_json(report()).find(R"("least_bytes": 8)"), std::string::npos);
  write("process-7.jsonl", equal_steps(2));
  EXPECT_EQ(run_text(report(), {}).find("Memory does not grow"), std::string::npos) << "too few steps";
  write("process-7.jsonl", equal_steps(3) + phase("forward", 5, 8, 9) + phase("backward", 5, 12, 12));
  EXPECT_EQ(run_text(report(), {}).find("Memory does not grow"), std::string::npos);
  write("process-7.jsonl", equal_steps(3) + phase("forward", 5, 8, 9) + phase("backward", 5, 4, 9));
  EXPECT_NE(run_text(report(), {})
                .find("\nMemory does not grow: 4 B to 8 B are allocated after each of steps 3 to 6\n"),
            std::string::npos);
}

// A storage of 60 B that is alive at a later peak than the trace has, as the recorder writes it.
const std::string kLaterPeak =
    R"({"row": "peak", "device": 0, "allocated_bytes": 60, "storages": [)"
    R"j({"bytes": 40, "category": "kept", "name": "", "line": "/me/train.py:14", "made_in": "cat (lib/a.py:2)", )j"
    R"("held_by": "seen (/me/train.py:12 in evaluate), a list of 9", "dtype": "f32", "shape": [10]}, )"
    R"({"bytes": 15, "category": "activation", "line": "", "held_by": "val (/me/train.py:15), a Tensor, by its graph"}, )"
    R"({"bytes": 5, "category": "temporary", "several": true, "held_by": ""}]})"
    "\n";

TEST_F(RecordingTest, WhatIsAliveAtALaterPeakIsSaidWithTheVariablesThatHoldIt) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6) +
                               named("evaluate", "forward", 4, 7, 60) + kLaterPeak);
  const RunReport found = report();
  const RankRun& rank = found.ranks.at(0);
  EXPECT_EQ(rank.memory.peak.bytes, Bytes{60});
  EXPECT_EQ(rank.memory.peak.part, (StepPart{Phase::forward, 4, -1}));
  const std::string text = run_text(found, {});
  EXPECT_NE(text.find("reached in evaluate, step 5\n"), text.npos) << text;
  EXPECT_NE(text.find("  kept             40      66.7\n"), text.npos) << text;
  EXPECT_NE(text.find("\nHeld at the peak by\n"
                      "  bytes, B  share, %  variable, which leads to them\n"
                      "  -------------------------------------------------------------------\n"
                      "        40      66.7  seen (/me/train.py:12 in evaluate), a list of 9\n"
                      "        15      25.0  val (/me/train.py:15), a Tensor, by its graph\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("kept        f32[10]      cat (lib/a.py:2)  /me/train.py:14"), text.npos) << text;
  const std::string json = run_json(found);
  EXPECT_NE(json.find(R"("held_by": "seen (/me/train.py:12 in evaluate), a list of 9")"), json.npos);
  EXPECT_NE(json.find(R"j("made_in": "cat (lib/a.py:2)")j"), json.npos);
}

TEST_F(RecordingTest, APeakThatIsHardlyHigherThanTheTracesLeavesWhatTheTraceHas) {
  write("events-0-7.trace", "# phase setup\n+ 1 59 temporary\n");
  write("events-0-7.lines", "1 /me/train.py:3 main\n");
  std::string later = kLaterPeak;
  later.replace(later.find("\"allocated_bytes\": 60"), 21, "\"allocated_bytes\": 515");
  write("events-0-7.held", "1 - batch (/me/train.py:3), a Tensor\n");
  write("process-7.jsonl",
        kProcess + kTorch + R"({"row": "device", "device": 0, "name": "NVIDIA H200", "memory": 80000000})" +
            "\n" + R"({"row": "events", "device": 0, "file": "events-0-7.trace", "unmatched": 0})" + "\n" +
            phase("setup", 0, 5, 512) + phase("forward", 4, 7, 515) + later);
  const RunReport found = report();
  const RankRun& rank = found.ranks.at(0);
  EXPECT_TRUE(rank.peak_is_near);
  EXPECT_EQ(rank.memory.peak.bytes, Bytes{59});
  EXPECT_EQ(rank.memory.peak.by_category[static_cast<size_t>(Category::kept)], Bytes{59});
  EXPECT_EQ(rank.peak_held_by.at(1), "batch (/me/train.py:3), a Tensor");
  EXPECT_EQ(holder_of_results(rank), "batch (/me/train.py:3), a Tensor");
  EXPECT_NE(run_text(found, {}).find("reached in forward, step 5"), std::string::npos) << "where most was";
}

TEST_F(RecordingTest, WhatABackwardStillNeedsAtItsPeakIsHeldByAutograd) {
  const auto holder = [&](const std::string& phases, const std::string& rows) {
    write("events-0-7.trace", phases);
    write("process-7.jsonl",
          kProcess + kTorch + R"({"row": "device", "device": 0, "name": "NVIDIA H200", "memory": 80000000})" +
              "\n" + R"({"row": "events", "device": 0, "file": "events-0-7.trace", "unmatched": 0})" + "\n" +
              phase("setup", 0, 0, 0) + rows);
    const RunReport found = report();
    const std::vector<PeakHolder> holders = peak_holders(found.ranks.at(0));
    EXPECT_EQ(holder_of_results(found.ranks.at(0)), "") << "no variable of the program";
    return holders.empty() ? "" : holders[0].held_by + ", " + std::to_string(holders[0].bytes.count);
  };
  const std::string forward =
                        "# phase forward step 0\n> aten::mul\n+ 1 59 activation\n<\n"
                        "node #1 MulBackward0 module=\"fc\"\nsave 1 MulBackward0#1\n",
                    backward = "# phase backward step 0\n+ 2 100 temporary\n- 2\n- 1\n";
  EXPECT_EQ(holder(forward + backward, phase("forward", 0, 512, 512) + phase("backward", 0, 0, 1024)),
            "autograd, for the rest of the backward, 59");
  EXPECT_EQ(holder(forward, phase("forward", 0, 512, 512)), "")
      << "the recorder has looked, and found nobody";
}

TEST_F(RecordingTest, WhatMayHelpIsNamedAndWhatWasTriedIsShown) {
  write("process-7.jsonl",
        kProcess + kTorch + kDevice + phase("setup", 0, 5, 1500) +
            R"({"row": "fixes", "changes": [)"
            R"({"name": "fused", "change": "the optimizer with fused=True"}, )"
            R"({"name": "no_grad=/me/val.py:2", "change": "no_grad in {}", "line": "/me/val.py:2"}, )"
            R"({"name": "batch", "change": "batch_size={}", "largest": 64}]})" +
            "\n");
  RunReport found = report();
  const PossibleFix fused{"fused", "the optimizer with fused=True", "", 0};
  const PossibleFix no_grad{"no_grad=/me/val.py:2", "no_grad in {}", "/me/val.py:2", 0};
  const PossibleFix batch{"batch", "batch_size={}", "", 64};
  EXPECT_EQ(found.possible_fixes, (std::vector<PossibleFix>{fused, no_grad, batch}));
  EXPECT_EQ(text_of(fused), "the optimizer with fused=True");
  EXPECT_EQ(text_of(no_grad), "no_grad in /me/val.py:2");
  EXPECT_EQ(text_of(batch, 16), "batch_size=16");
  EXPECT_NE(run_text(found, {}).find("\n--fixes runs the program again with each change that may help, and "
                                     "shows what it takes then\n"),
            std::string::npos);
  TriedFixes& tried = found.fixes.emplace();
  tried.none = {"", "", {1500}, {1500}, false, false, {}};
  tried.rows = {{"fused", text_of(fused), {700}, {800}, true, false, {}},
                {"foreach", "foreach=False", {900}, {1000}, false, true, {}},
                {"batch", text_of(batch, 16), {600}, {700}, true, false, {}, true},
                {"empty_cache", "empty_cache()", {1500}, {1500}, false, false, {}},
                {"no_grad", text_of(no_grad), {}, {}, false, false, "RuntimeError in backward of step 1"}};
  std::string text = run_text(found, {});
  EXPECT_NE(text.find("\nWhat it takes at most with one change\n"
                      "  allocated, B  reserved                                               change\n"
                      "  "),
            text.npos)
      << text;
  EXPECT_NE(text.find("         1500      1500  does not fit                                 none\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("          700       800  fits "), text.npos) << text;
  EXPECT_NE(text.find("          600       700  fits (captured) "), text.npos) << text;
  EXPECT_NE(text.find("          900      1000  runs out of memory "), text.npos) << text;
  EXPECT_NE(text.find("ended by RuntimeError in backward of step 1  no_grad in /me/val.py:2\n"), text.npos)
      << text;
  EXPECT_NE(text.find("\nno difference: empty_cache()\n"), text.npos) << text;
  EXPECT_EQ(text.find("on a device with room"), text.npos) << text;
  tried.has_room = true;
  text = run_text(found, {});
  EXPECT_NE(text.find("\nfigures are what the program asks for on a device with room for it"), text.npos)
      << text;
}

// Of a run whose phase had this peak.
RunReport run_with_peak(const std::string& name, const std::filesystem::path& folder, int64_t peak,
                        const std::string& more = "") {
  std::filesystem::create_directories(folder / name);
  std::ofstream(folder / name / "process-7.jsonl")
      << kProcess << kTorch << kDevice << phase("setup", 0, 5, peak) << more;
  LaunchOptions options;
  options.program = {"python", "train.py"};
  options.device.memory = {1000};
  return report_of(options, {}, read_processes(folder / name));
}

TEST_F(RecordingTest, ARunWithoutMemoryHasNoShares) {
  const std::string text = run_text(run_with_peak("none", folder_, 0), {});
  EXPECT_EQ(text.find("cached in pieces"), std::string::npos) << text;
}

TEST_F(RecordingTest, OfBothAnswersTheLargerRunIsReported) {
  const RunReport larger = larger_of(run_with_peak("zero", folder_, 400), run_with_peak("all", folder_, 900));
  EXPECT_EQ(largest_rank(larger).memory.phases.peak.reserved_bytes.peak, 900);
  EXPECT_NE(run_text(larger, {})
                .find("This report has all elements of unknown masks set. With unknown answers "
                      "as 0 the program takes 400 B (reserved 400 B) at most\n"),
            std::string::npos)
      << run_text(larger, {});
  const auto json = nlohmann::json::parse(run_json(larger)).at("other_answers");
  EXPECT_EQ(json.at("unknown_masks"), "none");
  EXPECT_EQ(json.at("reserved_bytes"), 400);

  const RunReport smaller =
      larger_of(run_with_peak("zero", folder_, 900), run_with_peak("all", folder_, 400));
  EXPECT_NE(run_text(smaller, {}).find("With all elements of unknown masks set the program takes 400 B"),
            std::string::npos);
}

TEST_F(RecordingTest, OfBothAnswersTheOneThatRunsOutOfMemoryIsReported) {
  const std::string ran_out =
      R"({"row": "out_of_memory", "device": 0, "requested": 2000, "line": "", "function": "", "phase": "setup", )"
      R"("step": 0, "module": "", "allocated_bytes": 7, "reserved_bytes": 8})"
      "\n";
  const RunReport report =
      larger_of(run_with_peak("zero", folder_, 900), run_with_peak("all", folder_, 400, ran_out));
  ASSERT_TRUE(report.other_answers.has_value());
  EXPECT_FALSE(report.other_answers->all_set);
  const RunReport other =
      larger_of(run_with_peak("zero", folder_, 400, ran_out), run_with_peak("all", folder_, 900));
  EXPECT_NE(
      run_text(other, {}).find("With all elements of unknown masks set the program takes 900 B (reserved "
                               "900 B) at most\n"),
      std::string::npos)
      << run_text(other, {});
}

}  // namespace
}  // namespace metaprof
