// `metaprof check` against memory snapshots: those of tests/data/snapshots, which PyTorch 2.11 wrote (make.py
// there), and those that `metaprof profile --snapshot` writes.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = "tests/data/snapshots/", kModel = kFolder + "model.pt2";

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_snapshot_" + std::to_string(getpid()) + name;
}

// What make.py printed: torch.cuda.memory_stats() of the run.
struct Peaks {
  Json allocated, requested, reserved;
};

void expect_peaks(const std::string& snapshot, const std::string& options, const Peaks& peaks) {
  const Outcome outcome = run_program("check " + kModel + " --tolerance 0 --json - --steps 2 --against " +
                                      snapshot + " " + options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["recorded"], peaks.allocated) << snapshot;
  EXPECT_EQ(json["rows"][1]["recorded"], peaks.requested) << snapshot;
  EXPECT_EQ(json["rows"][2]["recorded"], peaks.reserved) << snapshot;
  EXPECT_EQ(json["summary"][0]["peak_requested_error"], 0.0);
  EXPECT_EQ(json["summary"][0]["peak_reserved_error"], 0.0);
  for (const Json& row : json["rows"]) EXPECT_TRUE(row["phase"].is_null()) << row;
}

TEST(CheckSnapshot, TheFrameworksPeaksAreEqualToTheByte) {
  expect_peaks(kFolder + "whole.pickle", "", {415417856, 412860072, 434110464});
  expect_peaks(kFolder + "late.pickle", "", {415417856, 412860072, 434110464});
  expect_peaks(kFolder + "expandable.pickle", "--alloc-conf expandable_segments:True",
               {412861952, 412860072, 442499072});
}

// With max_split_size the addresses do not tell how large a block is: requested bytes are judged.
TEST(CheckSnapshot, AllocatedBytesAreLeftOutWhereTheyDoNotFollow) {
  expect_peaks(kFolder + "split.pickle", "--alloc-conf max_split_size_mb:21",
               {nullptr, 412860072, 543162368});
  const Outcome outcome =
      run_program("check " + kModel + " --steps 2 --alloc-conf max_split_size_mb:21 --against " + kFolder +
                  "split.pickle");
  EXPECT_NE(outcome.out.find(" 412860072 requested "), std::string::npos) << outcome.out;
}

TEST(CheckSnapshot, OtherOptionsAreAFinding) {
  const std::string junit = temporary(".xml");
  const Outcome outcome = run_program("check " + kModel + " --optimizer sgd --against " + kFolder +
                                      "whole.pickle --junit " + junit);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find("exceeded: whole: peak of allocated bytes: 415417856 recorded, "),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(read_file(junit).find("tests=\"1\" failures=\"1\""), std::string::npos);
}

TEST(CheckSnapshot, OurOwnAreRead) {
  const std::string snapshot = temporary(".pickle");
  for (const std::string model : {"resnet18", "lstm_lm"})
    for (const std::string options : {"", " --steps 1 --device a100 --precision amp-bf16 --optimizer sgd",
                                      " --batch 2 --alloc-conf expandable_segments:True"}) {
      const std::string path = "tests/data/models/" + model + ".pt2" + options;
      ASSERT_EQ(run_program("profile " + path + " --workspaces none --snapshot " + snapshot + " --json " +
                            snapshot + ".json")
                    .exit_code,
                0);
      const Outcome outcome =
          run_program("check " + path + " --workspaces none --tolerance 0 --json - --against " + snapshot);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
      const Json peak = Json::parse(read_file(snapshot + ".json"))["peak"],
                 rows = Json::parse(outcome.out)["rows"];
      EXPECT_EQ(rows[0]["recorded"], peak["allocated_bytes"]) << path;
      EXPECT_EQ(rows[1]["recorded"], peak["requested_bytes"]) << path;
      EXPECT_EQ(rows[2]["recorded"], peak["reserved_bytes"]) << path;
    }
}

// Python writes the same data in every protocol, and `change` may alter it before.
Outcome check_pickled(const std::string& change, int protocol) {
  const std::string file = temporary(".changed.pickle");
  const std::string program = "import pickle; d = pickle.load(open('" + kFolder + "whole.pickle', 'rb')); " +
                              change + "; pickle.dump(d, open('" + file + "', 'wb'), " +
                              std::to_string(protocol) + ")";
  const std::string command = METAPROF_PYTHON " -c \"" + program + "\"";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  Outcome outcome = run_program("check " + kModel + " --steps 2 --tolerance 0 --against " + file);
  const size_t at = outcome.err.find(file);
  if (at != std::string::npos) outcome.err.replace(at, file.size(), "FILE");
  return outcome;
}

TEST(CheckSnapshot, EveryProtocolIsRead) {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    const Outcome outcome = check_pickled("pass", protocol);
    EXPECT_EQ(outcome.exit_code, 0) << protocol << outcome.err << outcome.out;
    EXPECT_NE(outcome.out.find(" 415417856  415417856 "), std::string::npos) << protocol << outcome.out;
  }
}

TEST(CheckSnapshot, FilesThatCannotBeUsedSayWhy) {
  const auto expect_bad = [](const std::string& change, const std::string& message) {
    const Outcome outcome = check_pickled(change, 4);
    EXPECT_EQ(outcome.exit_code, 2) << change;
    EXPECT_EQ(outcome.err, "metaprof: FILE: " + message + "\n") << change;
  };
  const std::string hint = "; is it what torch.cuda.memory._dump_snapshot wrote?";
  const std::string no_history =
      "has no history of requests on device 0; call torch.cuda.memory._record_memory_history() before the "
      "model is "
      "built";
  expect_bad("d = [1]", "expected a dictionary, got a list" + hint);
  expect_bad("del d['segments']", "'segments' is missing" + hint);
  expect_bad("d['device_traces'] = []", no_history);
  expect_bad("d['device_traces'] = [[]]", no_history);
  expect_bad("del d['device_traces'][0][0]['size']", "'size' is missing" + hint);
  expect_bad("d['device_traces'][0][0]['size'] = -1", "expected a number of bytes, got an integer" + hint);
  expect_bad("d['device_traces'][0][0]['addr'] = -1", "expected an address, got an integer" + hint);
  expect_bad("d['device_traces'][0][0]['action'] = 3", "expected a text, got an integer" + hint);
  expect_bad("d['segments'][0]['total_size'] = 512", "expected a larger size, got an integer" + hint);
  expect_bad("d['segments'] = []",
             "its history does not lead to its segments: more is taken than there is at the end");
  const Outcome calls = check_pickled("d = complex(1, 2)", 2);
  EXPECT_EQ(calls.exit_code, 2);
  EXPECT_NE(calls.err.find(" would import or call something (opcode 0x63); only plain data is read"),
            std::string::npos)
      << calls.err;
  const std::string cut = temporary(".cut.pickle");
  std::ofstream(cut) << read_file(kFolder + "whole.pickle").substr(0, 5000);
  expect_refusal_with("check " + kModel + " --against " + cut, {cut, "was cut off"});
  expect_refusal("check " + kModel + " --against none.pickle", "none.pickle: no such file");
}

TEST(CheckSnapshot, OptionsOfTheStepAreForSnapshotsOnly) {
  const std::string recording = "tests/data/recordings/lstm-lm.json";
  const std::string command = "check tests/data/models/lstm_lm.pt2 --against " + recording + " ";
  for (const std::string option : {"--steps 2", "--batch 4", "--device a100", "--memory 1GiB",
                                   "--alloc-conf a:b", "--env A=B", "--precision bf16"})
    expect_refusal(command + option, option.substr(0, option.find(' ')) +
                                         " is for snapshots (*.pickle) and reports of metaprof run: " +
                                         recording + " has its own options");
  expect_refusal(
      "check a.pt2 --steps 2 --baseline old.json",
      "--steps is for snapshots (*.pickle) and reports of metaprof run: old.json has its own options");
  expect_refusal("check --models exports --against a.pickle",
                 "a.pickle: does not say of which model it is; name the MODEL");
}

// The same steps on the device that an installed framework has.
TEST(CheckSnapshot, APythonWithTheFrameworkWritesOnesThatAreRead) {
  const char* python = std::getenv("METAPROF_TORCH_PYTHON");
  if (!python) GTEST_SKIP() << "METAPROF_TORCH_PYTHON does not name a Python that has PyTorch";
  const std::string file = temporary(".torch.pickle");
  const std::string command =
      std::string(python) + " " + kFolder + "make.py snapshot " + file + " 2>/dev/null";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "that Python's PyTorch has no CUDA device";
  const Outcome outcome = run_program("check " + kModel + " --steps 2 --against " + file);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace metaprof
