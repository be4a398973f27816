#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/evidence_folder.h"

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
                  kRecordings + "gpt2.json " + kRecordings + "lstm-lm.json " + kRecordings + "tied-lm.json " +
                  kRecordings + "mistral.amp-bf16.sgd.json " + kRecordings + "nerf.amp-bf16.sgd.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.check");
  EXPECT_EQ(json["schema_version"], 1);
  ASSERT_EQ(json["summary"].size(), 6u);
  for (const Json& row : json["summary"]) {
    EXPECT_EQ(row["exact_phases"], row["phases"]) << row;
    EXPECT_EQ(row["peak_allocated_error"], 0.0) << row;
    EXPECT_EQ(row["peak_reserved_error"], 0.0) << row;
    EXPECT_TRUE(row["first_difference"].is_null()) << row;
  }
  // 13 phases (setup, and four in each of three steps) of 7 statistics, current and peak.
  EXPECT_EQ(json["rows"].size(), 6u * 13 * 7 * 2);
  for (const Json& row : json["rows"]) EXPECT_EQ(row["recorded"], row["estimated"]) << row;
}

// Memory ends in "0.5 * input * (1.0 + torch.tanh(…))": what only this statement holds is gone when the error is there,
// 2 · 25,165,824 B. With 2.11 another block is there, and the error comes one call earlier, where nothing waits.
TEST(Check, AnErrorTakesWhatItsStatementHolds) {
  for (const char* recording : {"../recordings-2.15/gpt2.mem1000.json", "gpt2.mem1000.json"}) {
    const Outcome outcome = run_program(
        fmt::format("check {}/gpt2.pt2 --against {}{} --tolerance 0%", kModels, kRecordings, recording));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("allocated and requested bytes of every phase equal: 1 of 1"),
              std::string::npos)
        << outcome.out;
  }
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

struct CheckFiles {
  std::string junit, sarif;

  explicit CheckFiles(const std::string& name)
      : junit(testing::TempDir() + "metaprof_check_" + name + std::to_string(getpid()) + ".xml"),
        sarif(junit + ".sarif") {}
  std::string options() const { return " --junit " + junit + " --sarif " + sarif; }
  /// What other programs find in them, and that they can read them.
  std::string contents() const {
    const std::string command =
        METAPROF_PYTHON " tests/validate_check_files.py " + junit + " " + sarif + " > " + junit + ".txt";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return read_file(junit + ".txt");
  }
};

// The estimate lacks one activation: in the measured step the first ReLU, which this model runs in place, has
// an output of its own, [32, 64, 112, 112] of four bytes = 102760448, from forward to the end of backward.
// The measured peak is then 945981952 + 102760448 = 1048742400, and the error of the estimate -102760448 /
// 1048742400 = -9.798 %.
TEST(Check, ADroppedActivationExceedsTheToleranceAndItsOperatorIsNamed) {
  const std::string recording = changed("resnet18", [](Json& json) {
    for (Json& phase : json["phases"]) {
      if (phase["phase"] != "forward" && phase["phase"] != "backward") continue;
      phase["allocated_bytes"]["peak"] = phase["allocated_bytes"]["peak"].get<int64_t>() + 102760448;
      if (phase["phase"] == "forward")
        phase["allocated_bytes"]["current"] = phase["allocated_bytes"]["current"].get<int64_t>() + 102760448;
    }
  });
  const std::string log = std::filesystem::path(recording).replace_extension(".log.gz").string();
  const std::string edit = "gzip -dc " + kRecordings +
                           "resnet18.log.gz | awk '/^# phase optimizer/ && kept {print \"- 7000000000\"; "
                           "kept = 0} {print} /^# enter model.relu/ && !done {print \"> aten::relu\\n+ "
                           "7000000000 102760448\\n<\"; kept = done = 1}' | gzip > " +
                           log;
  ASSERT_EQ(std::system(edit.c_str()), 0);
  const CheckFiles files("dropped");
  const Outcome outcome =
      run_program("check " + kModels + "/resnet18.pt2 --against " + recording + files.options());
  EXPECT_EQ(outcome.exit_code, 1);
  const std::string difference =
      "recorded + 102760448 in aten::relu; estimated + 25690112 in aten::max_pool2d";
  const std::string error =
      "resnet18: peak of allocated bytes: 1048742400 recorded, 945981952 estimated: "
      "-9.798 %, tolerance 1 %; the first difference is in line ";
  for (const std::string& text : {error, difference, std::string("\nexceeded: " + error)})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
  const std::string found = files.contents();
  EXPECT_NE(found.find("case resnet18 " + error), std::string::npos) << found;
  const size_t result = found.find("result peak-allocated-error ");
  ASSERT_NE(result, std::string::npos) << found;
  EXPECT_NE(found.find(difference), std::string::npos) << found;
  EXPECT_NE(found.find(difference, result), std::string::npos) << "SARIF, too: " << found;
  const size_t line = found.find(".log.gz:", result);
  EXPECT_EQ(std::stoi(found.substr(line + 8)), 914) << "a line within the first forward: " << found;
}

// A report as `profile --json` writes it, changed by `change`.
std::string report_of(const std::string& options, const std::function<void(Json&)>& change) {
  std::string file = testing::TempDir() + "metaprof_check_report_" + std::to_string(getpid()) + ".json";
  const Outcome outcome = run_program("profile " + kModels + "/lstm_lm.pt2 --json " + file + options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  Json json = Json::parse(read_file(file));
  change(json);
  std::ofstream(file) << json.dump();
  return file;
}

TEST(CheckBaseline, TheModelIsRunWithTheOptionsOfTheReport) {
  const std::string options =
      " --precision amp-bf16 --optimizer sgd-momentum --optimizer-impl foreach --steps 2 --accumulate 2 "
      "--clip-norm 1 --zero-grad-to-none false --batch 4 --device a100 --memory 30GiB --alloc-conf "
      "expandable_segments:True --workspaces auto";
  const std::string report = report_of(options, [](Json&) {});
  const Outcome outcome =
      run_program("check " + kModels + "/lstm_lm.pt2 --tolerance 0 --json - --baseline " + report);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  const Json baseline = Json::parse(outcome.out)["baselines"][0];
  ASSERT_EQ(baseline["figures"].size(), 5u) << baseline;
  for (const auto& [name, figure] : baseline["figures"].items()) {
    EXPECT_EQ(figure["before"], figure["after"]) << name;
    EXPECT_GT(figure["after"], 0) << name;
  }
  for (const char* change : {"saved_by_module", "saved_by_node", "peak_by_category"})
    EXPECT_TRUE(baseline[change].is_null()) << baseline;
}

// The report says that a module saved 1000000 bytes less than it does now, and that the peak was as much
// lower.
TEST(CheckBaseline, WhatGrewIsNamed) {
  std::string module, node;
  const std::string report = report_of("", [&](Json& json) {
    Json* largest = nullptr;
    std::string path;
    for (Json& row : json["modules"])
      if (row["depth"] >= (largest ? (*largest)["depth"].get<int>() : 0) && row["saved_bytes"] > 1000000)
        largest = &row;
    ASSERT_NE(largest, nullptr);
    module = (*largest)["path"];
    for (Json& row : json["modules"]) {
      const std::string above = row["path"];
      if (above.empty() || above == module || module.starts_with(above + "."))
        row["saved_bytes"] = row["saved_bytes"].get<int64_t>() - 1000000;
    }
    Json& by_node = json["saved"]["by_node"];
    for (Json& row : by_node)
      if (node.empty() && row["bytes"] > 1000000) {
        node = row["node"];
        row["bytes"] = row["bytes"].get<int64_t>() - 1000000;
      }
    json["saved"]["bytes"] = json["saved"]["bytes"].get<int64_t>() - 1000000;
    json["peak"]["allocated_bytes"] = json["peak"]["allocated_bytes"].get<int64_t>() - 1000000;
    Json& activations = json["peak"]["by_category"]["activation"];
    activations = activations.get<int64_t>() - 1000000;
  });
  const CheckFiles files("grown");
  const std::string command = "check " + kModels + "/lstm_lm.pt2 --baseline " + report;
  const Outcome outcome = run_program(command + " --tolerance 0.01%" + files.options());
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const std::string found = files.contents();
  for (const std::string& text : {outcome.out, found}) {
    EXPECT_NE(text.find("saved in " + module + ": +1000000 B ("), std::string::npos) << text;
    EXPECT_NE(text.find("saved by " + node + ": +1000000 B ("), std::string::npos) << text;
    EXPECT_NE(text.find("at the peak activation: +1000000 B ("), std::string::npos) << text;
  }
  EXPECT_NE(found.find("result peak-allocated-growth "), std::string::npos) << found;
  EXPECT_NE(found.find("result saved-growth "), std::string::npos) << found;
  EXPECT_EQ(found.find("result peak-reserved-growth "), std::string::npos) << found;
  EXPECT_EQ(run_program(command + " --tolerance 100%").exit_code, 0);
}

TEST(CheckBaseline, AnotherModelIsAFailureByName) {
  const std::string report = report_of("", [](Json& json) { json["model"] = "gpt2"; });
  const Outcome outcome = run_program("check " + kModels + "/lstm_lm.pt2 --baseline " + report);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(
      outcome.out.find("the baseline is of gpt2, this is lstm_lm; --accept makes a baseline of this one\n"),
      std::string::npos)
      << outcome.out;
  const Json findings = Json::parse(
      run_program("check " + kModels + "/lstm_lm.pt2 --json - --baseline " + report).out)["findings"];
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0]["rule"], "another-model");
}

// The new baseline has what is compared and nothing else, and the model passes against it.
TEST(CheckBaseline, AcceptWritesTheNewOne) {
  const std::string options = " --batch 4 --device a100 --precision amp-bf16";
  const std::string report = report_of(options, [](Json& json) {
    json["model"] = "gpt2";
    json["peak"]["allocated_bytes"] = 1;
  });
  const size_t whole = read_file(report).size();
  const std::string command = "check " + kModels + "/lstm_lm.pt2 --tolerance 0 --baseline " + report;
  EXPECT_EQ(run_program(command).exit_code, 1);
  EXPECT_EQ(run_program(command + " --accept").exit_code, 0);
  EXPECT_EQ(run_program(command).exit_code, 0);
  const Json accepted = Json::parse(read_file(report));
  EXPECT_EQ(accepted["schema"], "metaprof.baseline");
  EXPECT_EQ(accepted["options"]["batch"], 4);
  EXPECT_EQ(accepted["device"], "a100");
  EXPECT_LT(read_file(report).size(), whole / 2);
  expect_refusal("check " + kModels + "/lstm_lm.pt2 --accept --against " + kRecordings + "lstm-lm.json",
                 "check: --accept needs --baseline");
}

TEST(CheckBaseline, GoesTogetherWithMeasurements) {
  const std::string report = report_of("", [](Json&) {});
  const Outcome outcome = run_program("check " + kModels + "/lstm_lm.pt2 --json - --baseline " + report +
                                      " --against " + kRecordings + "lstm-lm.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["summary"].size(), 1u);
  EXPECT_EQ(json["baselines"].size(), 1u);
  EXPECT_TRUE(json["findings"].empty());
}

TEST(CheckBaseline, ReportsThatCannotBeUsedSayWhy) {
  const std::string command = "check " + kModels + "/lstm_lm.pt2 --baseline ";
  const auto expect_bad = [&](const std::function<void(Json&)>& change, const std::string& message) {
    const std::string report = report_of("", change);
    expect_refusal(command + report, report + ": " + message);
  };
  expect_refusal(command + "no-such.json", "no-such.json: no such file");
  expect_refusal(
      command + kRecordings + "gpt2.json",
      kRecordings + "gpt2.json: 'schema' is missing; a report is what `metaprof profile --json` writes");
  expect_refusal_with(command + "README.md", {"README.md: JSON syntax error at byte 0 of ",
                                              "got '#'; a report is "
                                              "what `metaprof profile --json` writes"});
  expect_bad([](Json& json) { json["schema"] = "metaprof.diff"; },
             "schema: expected \"metaprof.profile\", got \"metaprof.diff\"");
  expect_bad([](Json& json) { json["schema_version"] = 7; }, "schema_version: expected 1, got 7");
  expect_bad([](Json& json) { json["options"] = Json::object(); },
             "options: is empty: a report of a trace does not say how its steps were run");
  expect_bad([](Json& json) { json["options"]["steps"] = 0; }, "options.steps: expected 1 to 1000, got 0");
  expect_bad([](Json& json) { json["options"]["batch"] = "4"; },
             "options.batch: expected a whole number of at least 0, got \"4\"");
  expect_bad([](Json& json) { json["options"].erase("precision"); },
             "options: 'precision' is missing; a report is what `metaprof profile --json` writes");
  expect_bad([](Json& json) { json["saved"]["bytes"] = int64_t{1} << 51; },
             "saved.bytes: expected at most 1125899906842624, got 2251799813685248");
  expect_bad([](Json& json) { json["peak"]["by_category"] = 3; },
             "peak.by_category: expected an object, got 3");
  expect_refusal("check --models " + kModels + " --baseline old.json",
                 "check: --baseline needs the MODEL: --models goes by the names that measurements have");
  expect_refusal(command + "old.json --junit - --sarif -",
                 "check: only one of --json, --junit and --sarif can go to stdout");
}

TEST(Check, MeasurementsThatCannotBeUsedSayWhy) {
  expect_refusal("check " + kModels + "/resnet18.pt2 --against no-such.json", "no-such.json: no such file");
  const std::string cut = testing::TempDir() + "metaprof_check_cut" + std::to_string(getpid()) + ".json";
  std::ofstream(cut) << read_file(kRecordings + "resnet18.json").substr(0, 1000);
  expect_refusal(
      "check " + kModels + "/resnet18.pt2 --against " + cut,
      cut +
          ": JSON syntax error at byte 1000 of 1000: expected a closing quote, got the end of the text; a "
          "measurement is what `metaprof run --json` writes, or a recording (docs/how_to/check.md)");
  expect_bad_measurement([](Json& json) { json.erase("config"); },
                         "'config' is missing; a measurement is what `metaprof run --json` writes, or a "
                         "recording (docs/how_to/check.md)");
  expect_bad_measurement([](Json& json) { json["config"]["steps"] = "three"; },
                         "config.steps: expected a whole number of at least 0, got \"three\"");
  expect_bad_measurement([](Json& json) { json["config"]["steps"] = 0; },
                         "config.steps: expected 1 to 1000, got 0");
  expect_bad_measurement([](Json& json) { json["config"]["accumulate"] = 0; },
                         "config.accumulate: expected 1 to 1000, got 0");
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
                         "phases[2]: 'allocated_bytes' is missing; a measurement is what `metaprof run "
                         "--json` writes, or a recording (docs/how_to/check.md)");
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

struct DifferingStep {
  int equal_phases = 0;
  double allocated = 0, requested = 0, reserved = 0;  // errors of peaks, in percent to three digits
  std::string_view reason = {};                       // docs/evidence/accuracy.md
};

// All other recordings are equal in every phase.
const std::map<std::string, DifferingStep, std::less<>> kDifferingSteps = {
    {"clip-vit-b-32", {10, 0, 0, 0, "a result is returned within an object that the caller keeps"}},
    {"densenet121.ckpt-features-denseblockx",
     {4, 0.009, 0, 1.636, "a method without a frame in the export binds names"}},
    {"swin-t.amp-bf16", {1, -0.128, 0, 2.980, "a function without a frame in the export binds names"}},
    {"swin-t.ckpt-features-x", {10, 0, 0, 0, "a function without a frame in the export binds names"}},
    {"tiny-llama.asgd.for-loop.steps2",
     {7, 0, 0, 0, "ASGD asks whether `mu` is 1, and the recorder's device reads 0"}},
};

double percent(const Json& row, const char* error) {
  return std::round(row[error].get<double>() * 1e5) / 1e3;
}

// Over all recordings, or the part that is in the checkout.
TEST(Check, AllRecordings) {
  const EvidenceFolder evidence = evidence_folder();
  const std::string file = testing::TempDir() + "metaprof_check_all" + std::to_string(getpid()) + ".json";
  const Outcome outcome = run_program("check --models " + evidence.models.string() + " --against " +
                                      evidence.steps.string() + "/*.json --json " + file);
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err << "\ntwo peaks are off by more than 1 %";
  const Json summary = Json::parse(read_file(file))["summary"];
  EXPECT_EQ(summary.size(), evidence.whole ? 256u : 98u);
  size_t met = 0;
  for (const Json& row : summary) {
    const std::string name = row["recording"];
    const auto differing = kDifferingSteps.find(name);
    const bool listed = differing != kDifferingSteps.end();
    const DifferingStep expected = listed ? differing->second : DifferingStep{.equal_phases = row["phases"]};
    SCOPED_TRACE(name + (listed ? ": " + std::string(expected.reason) : ""));
    EXPECT_EQ(row["exact_phases"], expected.equal_phases);
    EXPECT_EQ(percent(row, "peak_allocated_error"), expected.allocated);
    EXPECT_EQ(percent(row, "peak_requested_error"), expected.requested);
    EXPECT_EQ(percent(row, "peak_reserved_error"), expected.reserved);
    met += listed;
  }
  EXPECT_EQ(met, evidence.whole ? kDifferingSteps.size() : 4u) << "of the steps that differ";
}

}  // namespace
}  // namespace metaprof
