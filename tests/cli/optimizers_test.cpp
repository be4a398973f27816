// Options of optimizers ("adam-amsgrad-maximize"): what steps take, against the framework's own on the emulated device
// (tests/data/optimizers, by tools/record_optimizers.py with PyTorch 2.11), and which words there are.

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using nlohmann::json;

constexpr const char* kModel = "tests/data/optimizers/mlp.mp";

// What each of three steps has added at its end and at its peak.
json steps_of(const std::string& optimizer, const std::string& implementation) {
  const Outcome outcome = run_program("profile " + std::string(kModel) +
                                      " --device h200 --workspaces none --steps 3 --optimizer " + optimizer +
                                      " --optimizer-impl " + implementation + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json phases = json::parse(outcome.out)["phases"];
  json steps = json::array();
  for (size_t i = 1; i < phases.size(); ++i) {
    if (phases[i]["phase"] != "optimizer") continue;
    const int64_t before = phases[i - 1]["allocated_bytes"]["current"];
    const json& allocated = phases[i]["allocated_bytes"];
    steps.push_back(
        {allocated["current"].get<int64_t>() - before, allocated["peak"].get<int64_t>() - before});
  }
  return steps;
}

TEST(Optimizers, TakeWhatTheFrameworksTakeWithTheirOptions) {
  const json recorded = json::parse(read_file("tests/data/optimizers/steps.json"));
  int runs = 0;
  for (const auto& [optimizer, implementations] : recorded["steps"].items())
    for (const auto& [implementation, steps] : implementations.items()) {
      EXPECT_EQ(steps_of(optimizer, implementation), steps) << optimizer << " " << implementation;
      ++runs;
    }
  EXPECT_GE(runs, 180);
}

TEST(Optimizers, TakeOnlyTheOptionsThatTheyHave) {
  for (const std::string word :
       {"nadam-capturable", "adam-amsgrad-amsgrad", "adamw-", "sgd-capturable", "-wd"}) {
    const Outcome outcome = run_program("profile " + std::string(kModel) + " --optimizer " + word);
    EXPECT_EQ(outcome.exit_code, 2) << word;
    EXPECT_NE(
        outcome.err.find("; and adam, adamw followed by -amsgrad, -capturable, -differentiable, -maximize, "
                         "-wd; nadam, radam by -decoupled, -differentiable, -maximize, -wd; sgd"),
        std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(steps_of("adam-maximize-amsgrad", "foreach"), steps_of("adam-amsgrad-maximize", "foreach"));
}

// A model's parameters are leaves: the framework's step fails, too.
TEST(Optimizers, AreNotDifferentiableOverLeaves) {
  const Outcome outcome = run_program("profile " + std::string(kModel) + " --optimizer adam-differentiable");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("a leaf that requires grad cannot be written in place"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace metaprof
