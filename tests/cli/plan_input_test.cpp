#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

const std::string kResnet = "tests/data/models/resnet18.pt2";

TEST(PlanInput, WritesEveryFormat) {
  for (const char* format : {"rotor", "checkmate", "sac", "knapsack", "json"}) {
    const Outcome outcome = run_program("plan-input " + kResnet + " --format " + format);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["schema"], std::string("metaprof.plan_input.") + format);
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["model"], "resnet18");
    EXPECT_TRUE(json.contains("units"));
  }
  const Outcome csv = run_program("plan-input " + kResnet + " --format csv --output -");
  EXPECT_TRUE(csv.out.starts_with("id,lower,upper,size\n0,")) << csv.out.substr(0, 80);
}

// Eight residual blocks and what is around them. What all stages keep is what the forward saves and holds,
// with the results that they hand on although nobody saves them: the outputs of the pooling and of the last
// layer's input.
TEST(PlanInput, StagesOfAResnetKeepWhatItsForwardKeeps) {
  const Json rotor = Json::parse(run_program("plan-input " + kResnet + " --format rotor").out);
  const Json profile =
      Json::parse(run_program("profile " + kResnet + " --optimizer none --steps 1 --per-node --json -").out);
  int64_t kept = 0, boundaries = 0, inputs = rotor["input"];
  for (const Json& stage : rotor["stages"]) {
    kept += stage["xbar"].get<int64_t>();
    boundaries += stage["x"].get<int64_t>();
  }
  const int64_t saved =
      profile["nodes"]["totals"]["saved"].get<int64_t>() + profile["nodes"]["totals"]["held"].get<int64_t>();
  EXPECT_GE(kept, saved - inputs);
  EXPECT_LE(kept, saved - inputs + boundaries);
  EXPECT_EQ(rotor["stages"].size(), 14u);
}

TEST(PlanInput, RefusesWhatItDoesNotKnow) {
  expect_refusal_with("plan-input " + kResnet + " --format yaml", {"--format", "rotor", "checkmate"});
  expect_refusal(
      "plan-input no-such.pt2",
      "no-such.pt2: no such file, and no no-such.pt2 here or in the folders of METAPROF_MODELS (not set)");
}

}  // namespace
}  // namespace metaprof
