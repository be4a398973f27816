#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kModels = "tests/data/models", kRecordings = "tests/data/recordings/";

// A copy of a recording without its log, changed by `change`.
std::string changed(const std::string& name, const std::function<void(Json&)>& change) {
  Json json = Json::parse(read_file(kRecordings + name + ".json"));
  change(json);
  std::string path = testing::TempDir() + "metaprof_check_" + std::to_string(getpid()) + name + ".json";
  std::ofstream(path) << json.dump();
  return path;
}

void expect_bad_measurement(const std::function<void(Json&)>& change, const std::string& message) {
  const std::string path = changed("resnet18", change);
  expect_refusal("check " + kModels + "/resnet18.pt2 --against " + path, path + ": " + message);
}

TEST(Check, RecordedStepsAreEqualToTheByte) {
  const Outcome outcome =
      run_program("check --models " + kModels + " --json - --against " + kRecordings + "resnet18.json " +
                  kRecordings + "gpt2.json " + kRecordings + "lstm-lm.json " + kRecordings + "tied-lm.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.check");
  EXPECT_EQ(json["schema_version"], 1);
  ASSERT_EQ(json["summary"].size(), 4u);
  for (const Json& row : json["summary"]) {
    EXPECT_EQ(row["exact_phases"], row["phases"]) << row;
    EXPECT_EQ(row["peak_allocated_error"], 0.0) << row;
    EXPECT_EQ(row["peak_reserved_error"], 0.0) << row;
    EXPECT_TRUE(row["first_difference"].is_null()) << row;
  }
  // 13 phases (setup, and four in each of three steps) of 7 statistics, current and peak.
  EXPECT_EQ(json["rows"].size(), 4u * 13 * 7 * 2);
  for (const Json& row : json["rows"]) EXPECT_EQ(row["recorded"], row["estimated"]) << row;
}

TEST(Check, TheTextHasALineForEachMeasurementAndTheTotals) {
  const Outcome outcome =
      run_program("check " + kModels + "/resnet18.pt2 --against " + kRecordings + "resnet18.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\nresnet18 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("allocated and requested bytes of every phase equal: 1 of 1; worst peak error "
                             "0.000 %\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("within 1 %: 1 of 1\n"), std::string::npos) << outcome.out;
}

TEST(Check, MemoryRunsOutInTheRecordedPhase) {
  const Outcome outcome =
      run_program("check --models " + kModels + " --json - --against " + kRecordings + "gpt2.mem1000.json");
  const Json summary = Json::parse(outcome.out)["summary"][0];
  EXPECT_EQ(summary["phases"], 2) << "setup, and the forward in which 1000 MiB are not enough";
  EXPECT_EQ(summary["exact_phases"], 2);
}

// The recorded peak of allocated bytes is raised by a quarter: the estimate is then 20 % below.
TEST(Check, AnErrorAboveTheToleranceIsAFinding) {
  const std::string path = changed("resnet18", [](Json& json) {
    for (Json& phase : json["phases"])
      phase["allocated_bytes"]["peak"] = phase["allocated_bytes"]["peak"].get<int64_t>() * 5 / 4;
  });
  const std::string command = "check " + kModels + "/resnet18.pt2 --against " + path;
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.out.find(" -20.000 % "), std::string::npos) << outcome.out;
  EXPECT_EQ(run_program(command + " --tolerance 21%").exit_code, 0);
  EXPECT_EQ(run_program(command + " --tolerance 0.19").exit_code, 1);
}

// One activation is missing in the estimate: here the log has one more, the 4096 bytes after the first
// request of a convolution's forward.
TEST(Check, TheFirstEventThatDiffersIsNamed) {
  const std::string base = testing::TempDir() + "metaprof_check_first" + std::to_string(getpid());
  std::filesystem::copy_file(kRecordings + "resnet18.json", base + ".json",
                             std::filesystem::copy_options::overwrite_existing);
  const std::string unpack =
      "gzip -dc " + kRecordings +
      "resnet18.log.gz | awk '{print} /^> aten::cudnn_convolution/ && "
      "!done {print \"+ 7000000000 4096\"; print \"- 7000000000\"; done = 1}' | gzip > " +
      base + ".log.gz";
  ASSERT_EQ(std::system(unpack.c_str()), 0);
  const Outcome outcome =
      run_program("check " + kModels + "/resnet18.pt2 --json - --against " + base + ".json");
  const Json difference = Json::parse(outcome.out)["summary"][0]["first_difference"];
  ASSERT_TRUE(difference.is_object()) << outcome.out.substr(0, 400);
  EXPECT_EQ(difference["recorded"],
            "+ 4096 in aten::conv2d > aten::convolution > aten::_convolution > aten::cudnn_convolution");
  EXPECT_TRUE(difference["estimated"].get<std::string>().starts_with("+ ")) << difference;
  EXPECT_GT(difference["line"], 0);
}

TEST(Check, MeasurementsThatCannotBeUsedSayWhy) {
  expect_refusal("check " + kModels + "/resnet18.pt2 --against no-such.json", "no-such.json: no such file");
  const std::string cut = testing::TempDir() + "metaprof_check_cut" + std::to_string(getpid()) + ".json";
  std::ofstream(cut) << read_file(kRecordings + "resnet18.json").substr(0, 1000);
  expect_refusal("check " + kModels + "/resnet18.pt2 --against " + cut,
                 cut + ": is no JSON, or was cut off; a measurement is what tools/record_pytorch.py writes");
  expect_bad_measurement([](Json& json) { json.erase("config"); },
                         "'config' is missing; a measurement is what tools/record_pytorch.py writes");
  expect_bad_measurement([](Json& json) { json["config"]["steps"] = "three"; },
                         "config.steps: expected a whole number of at least 0, got \"three\"");
  expect_bad_measurement([](Json& json) { json["config"]["steps"] = 0; },
                         "config.steps: expected 1 to 1000 steps, got 0");
  expect_bad_measurement([](Json& json) { json["config"]["accumulate"] = 0; },
                         "config.accumulate: expected 1 to 1000 micro-batches, got 0");
  expect_bad_measurement([](Json& json) { json["config"]["channels_last"] = 1; },
                         "config.channels_last: expected true or false, got 1");
  expect_bad_measurement([](Json& json) { json["config"]["model"] = 18; },
                         "config.model: expected a text, got 18");
  expect_bad_measurement([](Json& json) { json["config"]["clip_norm"] = "1"; },
                         "config.clip_norm: expected a number, got \"1\"");
  expect_bad_measurement([](Json& json) { json["config"] = "resnet18"; },
                         "config: expected an object, got \"resnet18\"");
  expect_bad_measurement(
      [](Json& json) { json["config"]["over"]["dropout"] = 0; },
      "config.over: expected {}: options of the model's constructor are in its export, got "
      "{\"dropout\":0}");
  expect_bad_measurement([](Json& json) { json["phases"] = Json::array(); },
                         "phases: expected at least one phase, got []");
  expect_bad_measurement([](Json& json) { json["phases"] = 3; }, "phases: expected a list, got 3");
  expect_bad_measurement([](Json& json) { json["phases"][1]["phase"] = "sleep"; },
                         "phases[1].phase: expected setup, forward, backward, optimizer or zero_grad, got "
                         "\"sleep\"");
  expect_bad_measurement([](Json& json) { json["phases"][2].erase("allocated_bytes"); },
                         "phases[2]: 'allocated_bytes' is missing; a measurement is what "
                         "tools/record_pytorch.py writes");
}

// Bytes now, and MiB at the peak.
TEST(Check, NumbersOfDifferentUnitsAreNoticed) {
  expect_bad_measurement(
      [](Json& json) {
        json["phases"][0]["allocated_bytes"] = {{"current", 46827520}, {"peak", 44}};
      },
      "phases[0].allocated_bytes: the peak 44 is below the current value 46827520; do they have the same "
      "unit?");
}

TEST(Check, MeasurementsOfAnotherModelOrBatchAreNoticed) {
  const std::string other = kRecordings + "gpt2.json";
  expect_refusal(
      "check " + kModels + "/resnet18.pt2 --against " + other,
      other + ": is of another model: it has 148 parameters, tests/data/models/resnet18.pt2 has 62");
  const std::string path = changed("resnet18", [](Json& json) {
    json["inputs"][0]["shape"] = {8, 3, 224, 224};
  });
  expect_refusal("check " + kModels + "/resnet18.pt2 --against " + path,
                 path +
                     ": is of another batch: input 0 is [8,3,224,224], that of "
                     "tests/data/models/resnet18.pt2 is [32,3,224,224]");
}

TEST(Check, OptionsThatContradict) {
  const std::string both = "check: name the model, or the folder of its exports with --models, and not both";
  expect_refusal("check --against " + kRecordings + "gpt2.json", both);
  expect_refusal("check a.pt2 --models b --against " + kRecordings + "gpt2.json", both);
  expect_refusal(
      "check --models nowhere --against " + kRecordings + "gpt2.json",
      "nowhere/gpt2.pt2: no such file; " + kRecordings + "gpt2.json was measured with this export");
  expect_refusal("check a.pt2 --against b.json --tolerance much",
                 "--tolerance: 'much' is no share; write 1% or 0.01");
  expect_refusal_with("check a.pt2", {"--against"});
}

// Over all recordings, where they are: the table is printed, and what must hold is checked.
TEST(Check, AllRecordings) {
  const char* shared = std::getenv("METAPROF_SHARED");
  const std::filesystem::path folder = shared ? shared : "../shared";
  if (!std::filesystem::is_directory(folder / "recordings/models")) GTEST_SKIP() << "no recordings";
  const std::string file = testing::TempDir() + "metaprof_check_all" + std::to_string(getpid()) + ".json";
  const Outcome outcome = run_program("check --models " + (folder / "models").string() + " --against " +
                                      (folder / "recordings/models").string() + "/*.json --json " + file);
  std::cout << outcome.out;
  ASSERT_LE(outcome.exit_code, 1) << outcome.err;
  const Json summary = Json::parse(read_file(file))["summary"];
  double exact = 0, exact_reserved = 0, worst = 0, worst_reserved = 0, sum_reserved = 0;
  for (const Json& row : summary) {
    const double reserved = std::abs(row["peak_reserved_error"].get<double>());
    exact += row["exact_phases"] == row["phases"];
    exact_reserved += reserved == 0;
    sum_reserved += reserved;
    worst_reserved = std::max(worst_reserved, reserved);
    for (const char* error : {"peak_allocated_error", "peak_requested_error"})
      worst = std::max(worst, std::abs(row[error].get<double>()));
  }
  const auto count = static_cast<double>(summary.size());
  EXPECT_GE(exact / count, 0.90);
  EXPECT_LE(worst, 0.005);
  EXPECT_GE(exact_reserved / count, 0.75);
  EXPECT_LE(sum_reserved / count, 0.005);
  EXPECT_LE(worst_reserved, 0.03);
}

}  // namespace
}  // namespace metaprof
