// Workspaces of cuDNN's plans: recorded steps in which the library planned for the described device.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/evidence_folder.h"

namespace metaprof {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string model_of(const json& config) {
  std::string name = config["model"];
  for (auto [key, letter] : {std::pair{"batch", "b"}, {"seq", "s"}, {"image", "i"}})
    if (!config[key].is_null()) name += "." + std::string(letter) + std::to_string(config[key].get<int>());
  return (evidence_folder().models / (name + ".pt2")).string();
}

json profiled(const json& config, const std::string& workspaces) {
  std::string words = "profile " + model_of(config) + " --json - --workspaces " + workspaces + " --device " +
                      config["device"].get<std::string>() + " --precision " +
                      config["precision"].get<std::string>() + " --optimizer " +
                      config["optimizer"].get<std::string>();
  if (config["channels_last"].get<bool>()) words += " --channels-last";
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? json::parse(outcome.out) : json();
}

class PlannedRecordings : public testing::Test {
 protected:
  // Requested bytes of every phase, at its end and at most.
  template <class Compare>
  void for_each_phase(const std::string& workspaces, const Compare& compare) {
    int recordings = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".json") continue;
      SCOPED_TRACE(entry.path().stem().string());
      const json recorded = json::parse(read_file(entry.path().string()));
      const json report = profiled(recorded["config"], workspaces);
      ASSERT_EQ(report["phases"].size(), recorded["phases"].size());
      for (size_t i = 0; i < recorded["phases"].size(); ++i)
        for (const char* when : {"current", "peak"})
          compare(recorded["phases"][i]["requested_bytes"][when].get<double>(),
                  report["phases"][i]["requested_bytes"][when].get<double>());
      ++recordings;
    }
    EXPECT_GT(recordings, 0);
  }
  const fs::path folder_ = evidence_folder().planned;
};

TEST_F(PlannedRecordings, AreReproducedWithTheirTable) {
  for_each_phase((folder_ / "workspaces.jsonl").string(),
                 [](double recorded, double profiled) { EXPECT_EQ(profiled, recorded); });
}

// Convolutions by asking cuDNN, attention by rule. The recordings were made without engines that call cuBLASLt, which are
// planned now, as on a card: requested bytes differ by up to 0.8 %.
TEST_F(PlannedRecordings, AreNearByAskingCudnn) {
  const json asked = json::parse(
      run_program("profile tests/data/models/resnet18.pt2 --steps 1 --json - --workspaces auto").out);
  if (asked["workspaces"]["planned"] == 0) GTEST_SKIP() << "cuDNN is not installed";
  for_each_phase("auto", [](double recorded, double profiled) {
    fprintf(stderr, "A %.5f\n", std::abs(profiled - recorded) / recorded);
  });
}

TEST_F(PlannedRecordings, AreNearByRuleAlone) {
  setenv("METAPROF_CUDNN", "/nowhere", 1);
  for_each_phase("auto", [](double recorded, double profiled) {
    fprintf(stderr, "W %.5f\n", std::abs(profiled - recorded) / recorded);
  });
  unsetenv("METAPROF_CUDNN");
}

TEST(Workspaces, ALibraryThatIsNotThereIsRefusedByARun) {
  setenv("METAPROF_CUDNN", "/nowhere/libcudnn.so.9", 1);
  const Outcome outcome = run_program("run -- true");
  unsetenv("METAPROF_CUDNN");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "metaprof: METAPROF_CUDNN=/nowhere/libcudnn.so.9: there is no such file or folder\n");
}

TEST(Workspaces, TheReportSaysWhereBytesComeFrom) {
  const std::string model = "profile tests/data/models/resnet18.pt2 --steps 1 --json - --workspaces ";
  const json none = json::parse(run_program(model + "none").out)["workspaces"];
  EXPECT_EQ(none["table"], 0);
  EXPECT_EQ(none["planned"], 0);
  EXPECT_GT(none["rule"], 0) << "cuBLAS";
  // One forward convolution of another model: the rest follows from a rule.
  const Outcome outcome =
      run_program(model + "tests/data/workspaces/three.jsonl", "METAPROF_CUDNN=/nowhere ");
  const json from_file = json::parse(outcome.out)["workspaces"];
  EXPECT_EQ(from_file["table"], 0);
  EXPECT_NE(outcome.err.find("note: workspaces of 59 of 59 calls of cuDNN are by rule"), std::string::npos)
      << outcome.err;  // 20 convolutions, forward and two gradients each; the image wants none
}

// Attention's workspaces on B200 follow from a rule whether or not there is a cuDNN.
TEST(Workspaces, CallsThatCudnnIsNotAskedAboutAreSaidToBeSo) {
  const Outcome outcome = run_program("fit llama-3.2-1b --device b200 --precision bf16 --steps 1");
  EXPECT_NE(outcome.err.find("calls of cuDNN are by rule: cuDNN is not asked about these calls"),
            std::string::npos)
      << outcome.err;
}

// cuDNN is asked unless somebody wants otherwise; where it cannot be asked, the report says why.
TEST(Workspaces, AreAskedOfCudnnByDefault) {
  const std::string words = "tests/data/models/resnet18.pt2 --steps 1 ";
  const Outcome outcome = run_program("profile " + words + "--json -", "METAPROF_CUDNN=/nowhere ");
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["options"]["workspaces"], "auto");
  EXPECT_EQ(report["workspaces"]["rule_calls"], 59);
  EXPECT_EQ(report["workspaces"]["planned_calls"], 0);
  EXPECT_TRUE(report["workspaces"]["cudnn"].is_null());
  EXPECT_NE(report["workspaces"]["failure"].get<std::string>().find("/nowhere"), std::string::npos)
      << outcome.out;
  const Outcome text = run_program("profile " + words, "METAPROF_CUDNN=/nowhere ");
  for (const char* part : {"Note: workspaces of 59 of 59 calls of cuDNN are by rule", "/nowhere",
                           "pip install nvidia-cudnn-cu13"})
    EXPECT_NE(text.out.find(part), std::string::npos) << text.out;
  EXPECT_EQ(text.err, "") << "the report says it";
}

// However many runs there are, what is to be known of them is said once.
TEST(Workspaces, AGridSaysOnceWhoWasAsked) {
  const std::string words = "tests/data/models/resnet18.pt2 --steps 1 --memory 4GiB";
  for (const std::string command : {"fit ", "sweep --batch 1,2 "}) {
    const Outcome outcome = run_program(command + words, "METAPROF_CUDNN=/nowhere ");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("metaprof: note: workspaces of ")) << outcome.err;
  }
  const Outcome none = run_program("fit --workspaces none " + words);
  EXPECT_NE(none.err.find("calls of cuDNN count as 0"), std::string::npos) << none.err;
}

// A program that was moved without its helper.
TEST(Workspaces, AHelperThatIsNotThereIsNamed) {
  const fs::path folder = fs::path(testing::TempDir()) / ("metaprof_alone" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::copy_file(METAPROF_BINARY, folder / "metaprof", fs::copy_options::overwrite_existing);
  const std::string out = (folder / "out.json").string();
  const std::string command = (folder / "metaprof").string() +
                              " profile tests/data/models/resnet18.pt2 --steps 1 --json " + out +
                              " >/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(json::parse(read_file(out))["workspaces"]["failure"],
            "the helper metaprof-cudnn-plans is not beside this program");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace metaprof
