#include "capture/launch/recording.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/launch/fixes.h"
#include "capture/launch/installation.h"
#include "capture/launch/run.h"
#include "capture/launch/saved_program.h"
#include "core/error.h"
#include "tests/launch/recorded_run.h"

namespace metaprof {
namespace {

TEST_F(RecordingTest, AProgramThatWasKilledWhileItWasSetUpHadUsedTheDevice) {
  write("process-7.jsonl", kProcess + kTorch + kDevice);
  EXPECT_EQ(report(137).problem, "the program ended before its first phase was over");
  write("process-7.jsonl", kProcess + kTorch);
  EXPECT_EQ(report(137).problem, "the program ended before it used a CUDA device");
}

TEST(Assumptions, AreLinesOfTheEnvironment) {
  setenv("METAPROF_RECORDER", "capture/recorder", 1);
  LaunchOptions options;
  options.real = true;
  options.assumptions = {"even", "all", "src/detect.py:88=300", "a b.py:9=1/4"};
  EXPECT_EQ(environment_of(options, "/record").at("METAPROF_RECORD_ASSUME"),
            "even\nall\nsrc/detect.py:88=300\na b.py:9=1/4\n");
  for (const char* wrong : {"", "odd", "x.py=3", "x.py:3", "x.py:3=many", "x.py:3=1/0"}) {
    options.assumptions = {wrong};
    try {
      environment_of(options, "/record");
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(
          std::string(error.what()),
          fmt::format("--assume {}: expected even, all, both, FILE:LINE=NUMBER or FILE:LINE=NUMBER/NUMBER",
                      wrong));
    }
  }
}

TEST_F(RecordingTest, WhatTheEmulatedDeviceSays) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6));
  write("7.log",
        "emulator 1 7 1\n5 plan 4096 cudnn conv_fwd|fp32\n6 plan 0 rule conv_dgrad|fp32\n"
        "7 missing libcudart.so.13 cudaMallocArray\n8 missing cut o");
  const RunReport found = report();
  EXPECT_EQ(found.ranks.at(0).emulated.planned, 1);
  EXPECT_EQ(found.ranks.at(0).emulated.unplanned, 1);
  EXPECT_EQ(found.notes, std::vector<std::string>{"the emulated device has no function libcudart.so.13 "
                                                  "cudaMallocArray: its calls failed"});
  EXPECT_NE(run_text(found, {}).find("cuDNN gave no plan for 1 kinds of convolutions"), std::string::npos);
}

TEST_F(RecordingTest, MemoryOfNcclIsSaidToBeLeftOut) {
  const std::vector<std::string> left_out = {
      "NCCL's own memory counts as 0: real cards took 0.5 to 2.9 GiB for it (docs/reference/run.md)"};
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6));
  write("7.log", "emulator 1 7 1\n");
  EXPECT_TRUE(report().notes.empty());
  write("7.log", "emulator 1 7 1\n5 communicator 0 2\n6 communicator 0 2\n");
  EXPECT_EQ(report().notes, left_out);
  EXPECT_NE(run_text(report(), {}).find(left_out[0]), std::string::npos);
}

TEST_F(RecordingTest, MemoryThatComesBackTooEarlyIsSaid) {
  const auto notes = [&](const std::string& rows) {
    write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6) + rows);
    return report().notes;
  };
  EXPECT_TRUE(notes("").empty());
  EXPECT_EQ(
      notes(R"({"row": "lent", "device": 0, "bytes": 2097152, "line": "train.py:27"})"
            "\n"),
      std::vector<std::string>{
          "a second stream uses blocks of up to 2.0 MiB (train.py:27). They come back at once here, and on a "
          "device when that stream is done, so that more can be reserved: --device-clock expected or late"});
  EXPECT_EQ(notes(R"({"row": "lent", "device": 0, "bytes": 8, "line": null})"
                  "\n")
                .at(0)
                .substr(0, 44),
            "a second stream uses blocks of up to 8 B. Th");
}

TEST_F(RecordingTest, TheAllocatorsSettingsAreThoseThatTheVersionReads) {
  const auto conf = [&](const char* version, const std::string& variables) {
    write("process-7.jsonl", kProcess + "{\"row\": \"torch\", \"version\": \"" + version +
                                 "\", \"cuda\": \"12.8\"}\n" + kDevice +
                                 "{\"row\": \"environment\", \"environment\": {" + variables + "}}\n" +
                                 phase("setup", 0, 5, 6));
    return report().ranks.at(0).alloc_conf;
  };
  const std::string expandable = "expandable_segments:True";
  const std::string first = "\"PYTORCH_ALLOC_CONF\": \"" + expandable + "\"",
                    second = "\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:64\"";
  EXPECT_EQ(conf("2.10.0", first), expandable);
  EXPECT_EQ(conf("2.10.0", first + ", " + second), expandable);
  EXPECT_EQ(conf("2.9.1", first), "");  // the name has CUDA in it there
  EXPECT_EQ(conf("2.9.1", first + ", " + second), "max_split_size_mb:64");
  EXPECT_EQ(conf("2.11.0", "\"PYTORCH_ALLOC_CONF\": \"no_such_setting:1\""), "");
}

TEST_F(RecordingTest, PhasesOfAProcess) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6) + phase("forward", 0, 7, 9));
  const auto processes = read_processes(folder_);
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].rank(), 3);
  EXPECT_EQ(processes[0].torch, "2.11.0+cu130");
  const RecordedDevice& device = processes[0].devices.at(0);
  ASSERT_EQ(device.phases.size(), 2U);
  EXPECT_EQ(device.phases[1].phase, "forward");
  EXPECT_EQ(device.phases[1].numbers.reserved_bytes.peak, 9);
  EXPECT_EQ(device.phases[1].micro, -1);
}

TEST_F(RecordingTest, StepsWithSeveralBackwardsHaveMicroBatches) {
  write("process-7.jsonl", kProcess + phase("forward", 0, 1, 1) + phase("backward", 0, 1, 1) +
                               phase("forward", 0, 1, 1) + phase("backward", 0, 1, 1) +
                               phase("optimizer", 0, 1, 1));
  const auto phases = read_processes(folder_).at(0).devices.at(0).phases;
  EXPECT_EQ(phases[0].micro, 0);
  EXPECT_EQ(phases[3].micro, 1);
  EXPECT_EQ(phases[4].micro, -1);
}

TEST_F(RecordingTest, ALastLineThatIsCutOffIsLeftOut) {
  write("process-7.jsonl", kProcess + phase("setup", 0, 5, 6) + R"({"row": "pha)");
  EXPECT_EQ(read_processes(folder_).at(0).devices.at(0).phases.size(), 1U);
}

TEST_F(RecordingTest, WhatTheProgramSetsItselfCounts) {
  write("process-7.jsonl",
        kProcess + phase("setup", 0, 5, 6) +
            R"({"row": "environment", "seconds": 2, "environment": {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}})" +
            "\n");
  const auto environment = read_processes(folder_).at(0).environment;
  EXPECT_EQ(environment.at("RANK"), "3");
  EXPECT_EQ(environment.at("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
}

TEST_F(RecordingTest, WhatTheRecorderDoesNotWriteIsAnError) {
  write("process-7.jsonl", "{\"row\": 5}\n");
  EXPECT_THROW(read_processes(folder_), Error);
}

TEST_F(RecordingTest, RequestsWithTheirLines) {
  write("events-0-7.trace", "# phase setup\n+ 1 64 parameter name=fc.weight\n");
  write("events-0-7.lines", "1 /me/my train.py:14 main\n");
  write("process-7.jsonl",
        kProcess + kDevice + phase("setup", 0, 64, 64) +
            R"({"row": "events", "device": 0, "file": "events-0-7.trace", "unmatched": 2})" + "\n");
  const RecordedDevice device = read_processes(folder_).at(0).devices.at(0);
  ASSERT_TRUE(device.trace);
  EXPECT_EQ(device.lines.at(1), "/me/my train.py:14");
  EXPECT_EQ(device.unmatched, 2);
}

TEST_F(RecordingTest, TheAllocatorsModelIsComparedByPartsOfTheStep) {
  write("events-0-7.trace",
        "# phase setup\n+ 1 512 parameter\n# phase forward step 0\n+ 2 512 activation\n"
        "# phase forward step 0\n+ 3 1024 temporary\n- 3\n# pause\n");
  write("events-0-7.lines", "");
  const auto difference = [&](int64_t last_peak) {
    write("process-7.jsonl",
          kProcess + kTorch +
              R"({"row": "device", "device": 0, "name": "NVIDIA H200", "memory": 1073741824})" + "\n" +
              phase("setup", 0, 512, 512) + phase("forward", 0, 1024, 1024) +
              phase("forward", 0, 1024, last_peak) +
              R"({"row": "events", "device": 0, "file": "events-0-7.trace", "unmatched": 0})" + "\n");
    return report().ranks.at(0).model_difference;
  };
  EXPECT_EQ(difference(2048),
            "");  // parameter, activation and temporary; two forwards are one part of the trace
  EXPECT_EQ(difference(4096), "forward of step 1: 2048 B requested at most, not 4096 B");
}

TEST_F(RecordingTest, ProgressIsTheNewestRow) {
  write("process-7.jsonl", kProcess + phase("setup", 0, 5, 60) + phase("backward", 4, 7, 9));
  const Progress progress = read_progress(folder_);
  EXPECT_EQ(progress.step, 4);
  EXPECT_EQ(progress.phase, "backward");
  EXPECT_EQ(progress.peak.count, 60);
}

TEST_F(RecordingTest, PeaksAreThoseOfAllPhases) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 60) +
                               phase("forward", 0, 7, 9) + phase("after", 0, 7, 70));
  const RunReport found = report(0, {30});
  ASSERT_EQ(found.ranks.size(), 1U);
  EXPECT_EQ(found.ranks[0].memory.phases.peak.reserved_bytes.peak, 70);
  EXPECT_EQ(found.ranks[0].memory.phases.rows.size(), 2U);
  // 1000 - 70 - 30: the context
  const std::string text = run_text(found, {});
  EXPECT_TRUE(text.starts_with(
      "FITS h200: needs 70 B + 30 B outside the allocator of 1000 B, margin 0 %; 900 B stay free\n"))
      << text;
}

TEST_F(RecordingTest, TheJsonFollowsItsSchema) {
  write(
      "process-7.jsonl",
      kProcess + kTorch + kDevice + phase("setup", 0, 5, 60) + named("load", "setup", 0, 5, 60) +
          phase("forward", 2, 7, 9) +
          R"({"row": "out_of_memory", "device": 0, "requested": 2000, "line": "/me/train.py:14", "function": "main", "phase": "forward", )"
          R"("step": 2, "module": "fc", "allocated_bytes": 7, "reserved_bytes": 8})" +
          "\n");
  const std::string file = folder_ / "run.json";
  RunReport found = report(1);
  found.fixes.emplace().rows = {{"fused", "fused=True", {5}, {6}, false, true, {}},
                                {"batch", "batch=4", {5}, {6}, true, false, {}, true},
                                {"foreach", "foreach=False", {}, {}, false, false, "TypeError in setup"}};
  EXPECT_NE(run_json(found).find(R"("runs_out_of_memory": true)"), std::string::npos);
  std::ofstream(file) << run_json(found);
  const int status =
      std::system((METAPROF_PYTHON " tests/validate_json.py reports/schema/run.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RecordingTest, WhatComparisonsNeedIsInTheReport) {
  write(
      "process-7.jsonl",
      kProcess + kTorch + kDevice +
          R"({"row": "libraries", "cudnn": 91900})"
          "\n"
          R"({"row": "model", "type": "Net", "parameters": {"tensors": 3, "trainable": 2, "bytes": 96}, )"
          R"("inputs": [{"shape": [4, 8], "dtype": "float32"}]})"
          "\n" +
          phase("setup", 0, 5, 60) +
          R"({"row": "events", "device": 0, "file": "events-0-7.trace", "log": "events-0-7.log", "unmatched": 0})"
          "\n");
  write("events-0-7.trace", "# phase setup\n+ 1 8 activation\n");
  write("events-0-7.lines", "");
  write("events-0-7.log", "# phase setup\n+ 0 8\n");
  const RunReport found = report();
  EXPECT_EQ(found.cudnn, 91900);
  ASSERT_EQ(found.ranks.size(), 1U);
  EXPECT_EQ(found.ranks[0].recorded.log, "# phase setup\n+ 0 8\n");
  ASSERT_EQ(found.ranks[0].models.size(), 1U);
  const std::string file = folder_ / "run.json", json = run_json(found);
  std::ofstream(file) << json;
  for (const char* text : {R"("cudnn": 91900)", R"("alloc_conf": "")", R"("type": "Net")",
                           R"("trainable": 2)", R"("dtype": "float32")"})
    EXPECT_NE(json.find(text), std::string::npos) << text << json;
  const int status =
      std::system((METAPROF_PYTHON " tests/validate_json.py reports/schema/run.schema.json " + file).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// On a real device the recorder comes along, and nothing of the emulated one.
TEST(RealDevices, HaveTheRecorderAlone) {
  setenv("METAPROF_RECORDER", "capture/recorder", 1);
  LaunchOptions options;
  options.real = true;
  for (const auto& [name, value] : environment_of(options, "/record"))
    EXPECT_TRUE(name == "PYTHONPATH" || name.starts_with("METAPROF_RECORD")) << name << "=" << value;
}

TEST_F(RecordingTest, EndedWhileItsProgramIsSaved) {
  write("process-7.jsonl",
        kProcess + kTorch + kDevice + phase("setup", 0, 1, 1) + R"({"row": "saving"})" + "\n");
  EXPECT_TRUE(read_processes(folder_).at(0).is_saving);
  LaunchOptions options;
  options.save = "step.mp";
  try {
    captured_programs(read_processes(folder_), options, "");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no program to save: it was ended while its program was being saved; its "
                 "steps were over");
  }
}

TEST_F(RecordingTest, ASavedProgramSaysWhichReadsAreUnknown) {
  const auto read = [](const std::string& source) {
    return R"({"row": "data_read", "device": 0, "op": "aten::item", "line": "net.py:6", "count": 3, "source": ")" +
           source + "\"}\n";
  };
  write("p.mp", "metaprof program 1\ncaptured torch 2.11.0 device h200 memory 1000\n");
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 1, 1) + read("computed") +
                               read("unknown") + read("assumed") + R"({"row": "program", "file": "p.mp"})" +
                               "\n");
  LaunchOptions options;
  options.save = "step.mp";
  const auto programs = captured_programs(read_processes(folder_), options, "");
  EXPECT_EQ(programs.at(0).second.warnings,
            (std::vector<std::string>{
                "net.py:6: aten::item read data of the device that could not be computed, and got 0 "
                "(3 times): other data may lead to other steps",
                "net.py:6: aten::item read data of the device that was assumed (3 times): other "
                "data may lead to other steps"}));
}

TEST_F(RecordingTest, ASavedProgramSaysWhatEndedItsFirstStep) {
  const std::string setup = phase("setup", 0, 1, 1), forward = phase("forward", 0, 2, 2),
                    update = phase("optimizer", 0, 3, 3);
  write("p.mp", "metaprof program 1\ncaptured torch 2.11.0 device h200 memory 1000\n");
  LaunchOptions options;
  options.save = "step.mp";
  for (const auto& [rows, unfinished] : std::vector<std::pair<std::string, std::string>>{
           {fmt::format("{}{}", setup, forward), "ValueError in forward of step 1"},
           {fmt::format("{}{}{}", setup, forward, update),
            "ValueError in forward of step 1"},  // it may have ended in the update
           {fmt::format("{}{}{}{}", setup, forward, update, phase("zero_grad", 0, 1, 1)), ""},
           {fmt::format("{}{}{}", setup, forward, phase("forward", 1, 2, 2)), ""}}) {
    write("process-7.jsonl", fmt::format("{}{}{}{}{}\n", kProcess, kTorch, kDevice, rows,
                                         R"({"row": "program", "file": "p.mp"})"));
    const auto programs =
        captured_programs(read_processes(folder_), options, "ValueError in forward of step 1");
    EXPECT_EQ(programs.at(0).second.captured->unfinished, unfinished) << rows;
  }
}

TEST_F(RecordingTest, CostsAreThoseOfTheRanksOwnProgram) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6));
  const RunReport found = report();
  RunCosts costs;
  Counts& counts = costs.by_rank[3];
  counts.total.counted.forward = {2000};
  counts.expected.backward = 0.5;
  EXPECT_NE(run_text(found, {}, costs).find("matrix products, convolutions, attention, FLOP"),
            std::string::npos);
  const auto json = nlohmann::json::parse(run_json(found, costs))["ranks"][0];
  EXPECT_EQ(json["flops"]["forward"], 2000);
  EXPECT_EQ(json["expected_seconds"]["backward"], 0.5);
  const auto without = nlohmann::json::parse(run_json(found))["ranks"][0];
  EXPECT_TRUE(without["flops"].is_null() && without["expected_seconds"].is_null());
  costs.by_rank.clear();
  costs.unknown = "FLOPs and time of rank 3 are not known: net.mp:3: no such operator";
  EXPECT_NE(run_text(found, {}, costs).find("\n" + costs.unknown + "\n"), std::string::npos);
}

TEST_F(RecordingTest, ARankThatAnotherOneStartedAndThatFailedEndsTheRun) {
  write("process-7.jsonl", kProcess + kTorch + kDevice + phase("setup", 0, 5, 6) +
                               R"({"row": "rank_ended", "rank": 5, "status": -9})" + "\n");
  LaunchOptions options;
  options.ranks = {3, 5};
  EXPECT_EQ(report_of(options, {}, read_processes(folder_)).ended, "rank 5, with exit status -9");
  write(
      "process-8.jsonl",
      R"({"row": "process", "pid": 8, "parent": 7, "program": ["a"], "environment": {"RANK": "5"}})"
      "\n" +
          kTorch + kDevice + phase("setup", 0, 5, 6) +
          R"({"row": "exception", "type": "KeyError", "line": "a.py:2", "function": "f", "out_of_memory": false, )"
          R"("phase": "forward", "step": 1})" +
          "\n");
  EXPECT_EQ(report_of(options, {}, read_processes(folder_)).ended,
            "KeyError in forward of step 2 (a.py:2), rank 5");
  options.ranks = {};
  EXPECT_EQ(report_of(options, {}, read_processes(folder_)).ended, "")
      << "a launcher may have started it again";
}

TEST_F(RecordingTest, RanksThatRunAreToldInTheEnvironment) {
  setenv("METAPROF_RECORDER", "capture/recorder", 1);
  const auto of = [&](const LaunchOptions& options) { return environment_of(options, folder_); };
  LaunchOptions options;
  options.real = true;
  EXPECT_FALSE(of(options).contains("METAPROF_RECORD_WORLD"));
  options.world_size = 16;
  options.gpus = 4;
  EXPECT_EQ(of(options).at("RANK"), "0");
  EXPECT_EQ(of(options).at("METAPROF_RECORD_WITH"), "");
  options.ranks = {6, 2, 15};
  EXPECT_EQ(of(options).at("RANK"), "6");
  EXPECT_EQ(of(options).at("LOCAL_RANK"), "2");
  EXPECT_EQ(of(options).at("METAPROF_RECORD_WITH"), "2,15");
  options.ranks = {};
  options.different_ranks = true;
  EXPECT_EQ(of(options).at("METAPROF_RECORD_WITH"), "different");
}

struct Problem {
  const char* name;
  std::string text;
  int status;
  const char* expected;
};

class ProblemTest : public RecordingTest, public testing::WithParamInterface<Problem> {};

TEST_P(ProblemTest, IsOneSentence) {
  if (!GetParam().text.empty()) write("process-7.jsonl", GetParam().text);
  EXPECT_EQ(report(GetParam().status).problem, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, ProblemTest,
    testing::Values(
        Problem{"NoPython", "", 0,
                "the recorder was not loaded: the program is not Python, or Python was started with -I, -E "
                "or -S or without its environment"},
        Problem{"NoTorch", kProcess, 0, "the program did not import PyTorch"},
        Problem{"EndedEarly", kProcess, 1, "the program ended before it had imported PyTorch"},
        Problem{"NoDevice", kProcess + kTorch, 0,
                "the program used no CUDA device: did it choose another one?"},
        Problem{"EndedBeforeDevice", kProcess + kTorch, 1, "the program ended before it used a CUDA device"},
        Problem{
            "OtherMachines",
            R"({"row": "process", "pid": 7, "parent": 1, "environment": {}, "program": ["python", "-m", )"
            R"("torch.distributed.run", "--nnodes=2", "train.py"]})"
            "\n" +
                kTorch,
            143,
            "its launcher waits for 2 machines, and there is this one: --world-size N --rank R runs one rank "
            "of the job alone, without a launcher"},
        Problem{
            "OneMachine",
            R"({"row": "process", "pid": 7, "parent": 1, "environment": {}, "program": ["torchrun", "--nnodes", "1"]})"
            "\n" +
                kTorch,
            1, "the program ended before it used a CUDA device"},
        Problem{"CpuOnly",
                kProcess + R"({"row": "problem", "kind": "cpu-only", "text": "for the CPU only"})" + "\n", 2,
                "for the CPU only"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace metaprof
