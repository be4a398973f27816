// `metaprof check` against reports of `metaprof run`: those of tests/data/runs (make.py there), where a run within an emulated run
// stands in for a GPU, and ones that contradict what is asked.

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const std::string kRuns = "tests/data/runs/", kModels = "tests/data/models/";

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_runs_" + std::to_string(getpid()) + name;
}

// A run's report without its log, changed.
std::string changed(const std::string& file, const std::function<void(Json&)>& change) {
  Json json = Json::parse(read_file(file));
  change(json);
  std::string path = temporary(".json");
  std::ofstream(path) << json.dump();
  return path;
}

// Both runs of a program stand beside the estimate, and every figure of every phase is the same.
void expect_equal(const std::string& name) {
  const Outcome outcome =
      run_program("check " + kRuns + name + ".mp --tolerance 0 --json - --against " + kRuns + "emulated/" +
                  name + ".json " + kRuns + "real/" + name + ".json");
  ASSERT_EQ(outcome.exit_code, 0) << name << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["tables"].size(), 1u) << name;
  EXPECT_GE(json["tables"][0].size(), 9u) << name;
  for (const Json& phase : json["tables"][0]) {
    EXPECT_TRUE(phase["equal"].get<bool>()) << name << phase;
    for (const char* column : {"estimate", "emulated", "real"})
      EXPECT_TRUE(phase["reserved_bytes"]["peak"][column].is_number()) << name << phase;
  }
  ASSERT_EQ(json["summary"].size(), 2u);
  for (const Json& row : json["summary"]) {
    EXPECT_EQ(row["exact_phases"], row["phases"]) << name;
    EXPECT_TRUE(row["first_difference"].is_null()) << name << row;
  }
  EXPECT_EQ(json["summary"][0]["on"], "emulated");
  EXPECT_EQ(json["summary"][1]["on"], "real");
}

TEST(CheckRuns, TwentyRunsAreEqualInEveryPhase) {
  size_t runs = 0;
  for (const auto& entry : fs::directory_iterator(kRuns)) {
    if (entry.path().extension() != ".mp") continue;
    expect_equal(entry.path().stem().string());
    ++runs;
  }
  EXPECT_EQ(runs, 20u);
}

TEST(CheckRuns, TheTextHasOneTableOfAllColumns) {
  const std::string report = kRuns + "emulated/mlp_sgd.json";
  const Outcome outcome =
      run_program("check " + kRuns + "mlp_sgd.mp --against " + report + " " + kRuns + "real/mlp_sgd.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text :
       {"step  phase      allocated peak: estimate   emulated       real  reserved peak: estimate   "
        "emulated       real  differs in\n",
        "\ncuBLAS workspace         33554432      2  rule\n"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
  const Outcome twice = run_program("check " + kRuns + "mlp_sgd.mp --against " + report + " " + report);
  EXPECT_NE(twice.out.find("emulated (" + report + ")"), std::string::npos) << twice.out;
}

// A peak of one phase of the real run is changed: the table names the statistic, and the tolerance is exceeded.
TEST(CheckRuns, WhatDiffersIsNamed) {
  const std::string real = changed(kRuns + "real/mlp_sgd.json", [](Json& json) {
    Json& peak = json["ranks"][0]["phases"][2]["reserved_bytes"]["peak"];
    peak = peak.get<int64_t>() * 2;
  });
  const Outcome outcome =
      run_program("check " + kRuns + "mlp_sgd.mp --against " + kRuns + "emulated/mlp_sgd.json " + real);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("  reserved peak\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("peak of reserved bytes: "), std::string::npos) << outcome.out;
}

// One request of the real run's log is another one.
TEST(CheckRuns, TheFirstRequestThatDiffersIsNamed) {
  const std::string base = temporary("_log");
  fs::copy_file(kRuns + "real/mlp_sgd.json", base + ".json", fs::copy_options::overwrite_existing);
  const std::string edit = "gzip -dc " + kRuns +
                           "real/mlp_sgd.log.gz | awk '/^# phase forward step 0/ {f = 1} f && /^\\+/ && "
                           "!done {$3 += 512; done = 1} {print}' | gzip > " +
                           base + ".log.gz";
  ASSERT_EQ(std::system(edit.c_str()), 0);
  const Outcome outcome = run_program("check " + kRuns + "mlp_sgd.mp --against " + base + ".json");
  EXPECT_NE(outcome.out.find("the first request that differs: line "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(": recorded + 4194816 in aten::linear > aten::addmm; estimated + 4194304 in "
                             "aten::linear > aten::addmm"),
            std::string::npos)
      << outcome.out;
}

// A report of a run of this export, with what a recording of it has.
std::string run_of_export(const std::function<void(Json&)>& change) {
  const Json recording = Json::parse(read_file("tests/data/recordings/resnet18.json"));
  Json report = Json::parse(read_file(kRuns + "real/mlp_sgd.json"));
  Json& rank = report["ranks"][0];
  rank["phases"] = recording["phases"];
  rank["models"] = {{{"type", "ResNet"},
                     {"parameters", {{"tensors", 62}, {"trainable", 62}, {"bytes", 46758048}}},
                     {"inputs", recording["inputs"]}}};
  change(report);
  std::string path = temporary("_export.json");
  std::ofstream(path) << report.dump();
  return path;
}

TEST(CheckRuns, AnExportTakesTheStepsOptionsFromTheCommandLine) {
  const std::string report = run_of_export([](Json&) {});
  const Outcome outcome =
      run_program("check " + kModels +
                  "resnet18.pt2 --optimizer adamw --workspaces none --tolerance 0 --against " + report);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(
      run_program("check " + kModels + "resnet18.pt2 --optimizer sgd --workspaces none --against " + report)
          .exit_code,
      1);
  expect_refusal("check --models tests/data/models --against " + report,
                 report + ": does not say of which model it is; name the MODEL");
}

// What `metaprof replay --json` says of the same steps.
TEST(CheckRuns, AReplayHasAColumn) {
  const Json run = Json::parse(read_file(kRuns + "real/mlp_sgd.json"));
  Json replay = {{"schema", "metaprof.replay"},
                 {"schema_version", 1},
                 {"allocator", ""},
                 {"device", {{"title", "NVIDIA H200"}, {"memory_bytes", 150121480192}}},
                 {"parts", Json::array()}};
  for (const Json& phase : run["ranks"][0]["phases"]) {
    const std::string name = phase["phase"];
    if (name == "after") continue;
    Json real = {{"blocks", phase["allocation"]}, {"segments", phase["segment"]}};
    for (const char* bytes :
         {"allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes"})
      real[bytes] = phase[bytes];
    const std::string part =
        name == "setup" ? name : "step " + std::to_string(phase["step"].get<int>()) + " " + name;
    replay["parts"].push_back({{"part", part}, {"estimated", nullptr}, {"real", real}});
  }
  const std::string file = temporary("_replay.json"), command = "check " + kRuns +
                                                                "mlp_sgd.mp --json - --against " + kRuns +
                                                                "real/mlp_sgd.json " + file;
  std::ofstream(file) << replay.dump();
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["summary"][1]["on"], "replayed");
  ASSERT_EQ(json["tables"].size(), 1u);
  for (const Json& phase : json["tables"][0]) {
    EXPECT_TRUE(phase["equal"].get<bool>()) << phase;
    EXPECT_TRUE(phase["segment"]["peak"]["replayed"].is_number()) << phase;
  }
  replay["parts"][0]["part"] = "sleep";
  std::ofstream(file) << replay.dump();
  expect_refusal(
      command,
      file + ": parts[0].part: expected a part of training steps, as \"step 0 backward\", got \"sleep\"");
}

struct Contradiction {
  std::string options;                // of check
  std::function<void(Json&)> change;  // of the report
  std::string message;                // behind its name
};

TEST(CheckRuns, ContradictionsAreRefusedByName) {
  const auto nothing = [](Json&) {};
  const std::string program = kRuns + "mlp_sgd.mp";
  const Contradiction captured[] = {
      {" --device h100", nothing, "was measured on NVIDIA H200, and --device is for NVIDIA H100 80GB HBM3"},
      {"", [](Json& json) { json["ranks"][0]["device_title"] = "NVIDIA L40S"; },
       "was measured on NVIDIA L40S, and " + program + " is for NVIDIA H200"},
      {" --memory 80GiB", nothing,
       "its device has 139.8 GiB of memory, and --memory is for 80.0 GiB; --memory names another size"},
      {"", [](Json& json) { json["ranks"][0]["device_memory"] = 25251807232; },
       "its device has 23.5 GiB of memory, and " + program +
           " is for 139.8 GiB; --memory names another size"},
      {" --framework 2.9", nothing, "was measured with PyTorch 2.11.0, and --framework is for 2.9.0"},
      {"", [](Json& json) { json["framework"]["version"] = "2.8.0+cu130"; },
       "was measured with PyTorch 2.8.0, and " + program + " is for 2.11.0"},
      {"",
       [](Json& json) {
         json["framework"]["cuda"] = "12.8";
         json["framework"]["version"] = "2.11.0+cu128";
       },
       "was measured with CUDA 12.8, and " + program + " ran with 13.0"},
      {"", [](Json& json) { json["framework"]["cuda"] = "12.8"; },
       "is of PyTorch 2.11.0+cu130 and of CUDA 12.8"},
      {" --alloc-conf expandable_segments:True", nothing,
       "its allocator was set to '', and --alloc-conf says 'expandable_segments:True'"},
      {" --steps 5", nothing, "has 3 steps, and --steps says 5"},
  };
  for (const Contradiction& one : captured) {
    const std::string report = changed(kRuns + "real/mlp_sgd.json", one.change);
    expect_refusal("check " + program + one.options + " --against " + report, report + ": " + one.message);
  }
  const Contradiction exported[] = {
      {" --batch 16", nothing,
       "is of another batch: input 0 is [32,3,224,224], that of tests/data/models/resnet18.pt2 is "
       "[16,3,224,224]"},
      {"", [](Json& json) { json["ranks"][0]["models"][0]["parameters"]["tensors"] = 60; },
       "is of another model: it has 60 parameters, tests/data/models/resnet18.pt2 has 62"},
      {"", [](Json& json) { json["ranks"][0]["device_title"] = "NVIDIA B9000"; },
       "was measured on NVIDIA B9000, which is not known: describe it in a file (--device FILE.json)"},
  };
  for (const Contradiction& one : exported) {
    const std::string report = run_of_export(one.change);
    expect_refusal("check " + kModels + "resnet18.pt2" + one.options + " --against " + report,
                   report + ": " + one.message);
  }
}

// A device file says which libraries its machine has.
TEST(CheckRuns, ADeviceFileMayContradictTheVersions) {
  const std::string device = temporary("_device.json"), report = run_of_export([](Json&) {});
  const auto refused = [&](const std::string& member, const std::string& message) {
    std::ofstream(device) << "{\"like\": \"h200\", " << member << "}";
    expect_refusal("check " + kModels + "resnet18.pt2 --device " + device + " --against " + report,
                   report + ": " + message);
  };
  refused("\"cuda\": 12080", "was measured with CUDA 13.0, and the file of the device says 12.8");
  refused("\"cuda\": 13000, \"cudnn\": 91000",
          "was measured with cuDNN 91900, and the file of the device says 91000");
}

TEST(CheckRuns, RunsOfOneTableMustBeOfOneDevice) {
  const std::string emulated = kRuns + "emulated/mlp_sgd.json";
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& message) {
    const std::string real = changed(kRuns + "real/mlp_sgd.json", change);
    expect_refusal("check " + kRuns + "mlp_sgd.mp --against " + emulated + " " + real, real + ": " + message);
  };
  refused([](Json& json) { json["ranks"][0]["device_title"] = "NVIDIA L40S"; },
          "was measured on NVIDIA L40S, and " + emulated + " is for NVIDIA H200");
  refused([](Json& json) { json["framework"]["version"] = "2.8.0"; },
          "was measured with PyTorch 2.8.0, and " + emulated + " is for 2.11.0");
  refused(
      [](Json& json) {
        json["framework"]["version"] = "2.11.0+cu128";
        json["framework"]["cuda"] = "12.8";
      },
      "was measured with CUDA 12.8, and " + emulated + " with 13.0");
  refused([](Json& json) { json["ranks"][0]["alloc_conf"] = "max_split_size_mb:32"; },
          "its allocator was set to 'max_split_size_mb:32', and " + emulated + " says ''");
}

// A recording says in two places on what it was made, and for which batch.
TEST(CheckRuns, ARecordingMayContradictItself) {
  const auto refused = [](const std::function<void(Json&)>& change, const std::string& options,
                          const std::string& message) {
    Json json = Json::parse(read_file("tests/data/recordings/resnet18.json"));
    change(json);
    const std::string path = temporary("_recording.json");
    std::ofstream(path) << json.dump();
    expect_refusal("check " + kModels + "resnet18.pt2 --against " + path + options, path + ": " + message);
  };
  refused([](Json& json) { json["device"] = "NVIDIA A100-SXM4-80GB"; }, "",
          "was measured on NVIDIA A100-SXM4-80GB, and config.device (h200) is for NVIDIA H200");
  refused(
      [](Json& json) {
        json["emulated"] = false;
        json["device_memory"] = 84987084800;
      },
      "",
      "its device has 79.2 GiB of memory, and config.device (h200) is for 139.8 GiB; --memory names another "
      "size");
  refused([](Json& json) { json["config"]["batch"] = 16; }, "",
          "config.batch is 16, and no input begins with that size");
  refused([](Json&) {}, " --framework 2.9", "was measured with PyTorch 2.11.0, and --framework is for 2.9.0");
}

TEST(CheckRuns, ReportsThatCannotBeUsedSayWhy) {
  const auto bad = [](const std::function<void(Json&)>& change, const std::string& message) {
    const std::string report = changed(kRuns + "real/mlp_sgd.json", change);
    expect_refusal("check " + kRuns + "mlp_sgd.mp --against " + report, report + ": " + message);
  };
  bad([](Json& json) { json["schema"] = "metaprof.profile"; },
      "schema: expected \"metaprof.run\" or \"metaprof.replay\", got \"metaprof.profile\"");
  bad([](Json& json) { json["schema_version"] = 2; }, "schema_version: expected 1, got 2");
  bad([](Json& json) { json["ranks"] = Json::array(); },
      "ranks: expected at least one process that used a device, got []");
  bad([](Json& json) { json["ranks"][0].erase("device_memory"); },
      "ranks[0]: 'device_memory' is missing; a measurement is what `metaprof run --json` writes, or a "
      "recording "
      "(docs/how_to/check.md)");
}

// Who says a plan's size: cuDNN, a table, or a rule. The test has the table; no cuDNN is asked.
TEST(CheckRuns, EveryWorkspaceSaysItsSource) {
  const std::string report = run_of_export([](Json&) {}),
                    command = "check " + kModels + "resnet18.pt2 --against " + report;
  const Outcome by_rule = run_program(command + " --workspaces auto --json -", "METAPROF_CUDNN=/nowhere ");
  const Json rule = Json::parse(by_rule.out)["summary"][0];
  ASSERT_FALSE(rule["workspaces"].empty());
  for (const Json& row : rule["workspaces"]) EXPECT_EQ(row["source"], "rule") << row;
  EXPECT_NE(rule["workspace_note"].get<std::string>().find("are by rule, as no cuDNN was asked: "),
            std::string::npos)
      << rule["workspace_note"];
  const Outcome text = run_program(command, "METAPROF_CUDNN=/nowhere ");
  EXPECT_NE(text.out.find("\nworkspaces of libraries "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("  rule\n"), std::string::npos) << text.out;

  const std::string table = temporary("_table.jsonl");  // of the first convolution
  std::ofstream(table)
      << R"({"op": "conv_fwd", "x": [32, 3, 224, 224], "w": [64, 3, 7, 7], "stride": [2, 2], "padding": [3, 3], )"
      << R"("dilation": [1, 1], "dtype": "fp32", "x_stride": [150528, 50176, 224, 1], "w_stride": [147, 49, 7, 1], )"
      << R"("y_stride": [802816, 12544, 112, 1], "workspace": {"h200": 123456}})"
      << "\n";
  const Outcome by_table =
      run_program(command + " --json - --workspaces " + table, "METAPROF_CUDNN=/nowhere ");
  const Json rows = Json::parse(by_table.out)["summary"][0]["workspaces"];
  const auto of_table =
      std::find_if(rows.begin(), rows.end(), [](const Json& row) { return row["source"] == "table"; });
  ASSERT_NE(of_table, rows.end()) << rows;
  EXPECT_EQ(*of_table,
            (Json{{"op", "aten::convolution"}, {"bytes", 123456}, {"count", 3}, {"source", "table"}}));
}

}  // namespace
}  // namespace metaprof
