#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

TEST(Ops, ListsWhatIsKnown) {
  const Outcome outcome = run_program("ops");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("operator ")) << outcome.out.substr(0, 200);
  EXPECT_NE(outcome.out.find("\naten::mm "), std::string::npos);
  EXPECT_NE(outcome.out.find(" operators\n"), std::string::npos);
}

TEST(Ops, FactsAreThereForOtherPrograms) {
  const Outcome outcome = run_program("ops aten::addmm --json -");
  ASSERT_EQ(outcome.exit_code, 0);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "metaprof.ops");
  const Json& addmm = json["operators"][0];
  EXPECT_EQ(addmm["name"], "aten::addmm");
  EXPECT_EQ(addmm["node"], "AddmmBackward0");
  EXPECT_EQ(addmm["flops"], "formula");
  EXPECT_EQ(addmm["composite"], false);
  EXPECT_GE(addmm["derivatives"].size(), 3u) << "self, mat1, mat2";
}

TEST(Ops, AWordThatNoOperatorHasIsAnError) {
  expect_refusal("ops nosuchop", "no operator has 'nosuchop' in its name; 'metaprof ops' lists all");
}

TEST(Ops, CoverageTellsWhatIsNotKnown) {
  const Outcome outcome =
      run_program("ops --json - --coverage tests/data/programs/custom_op.pt2 tests/data/fixtures/base.pt2");
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["models"], 2);
  EXPECT_EQ(json["models_known"], 1);
  EXPECT_EQ(json["calls"].get<int64_t>() - json["calls_known"].get<int64_t>(), json["operators"][0]["calls"]);
  EXPECT_DOUBLE_EQ(json["operators"][0]["share_of_calls"].get<double>() * json["calls"].get<double>(),
                   json["operators"][0]["calls"].get<double>());
  const Json& first = json["operators"][0];
  EXPECT_EQ(first["known"], false) << "what is missing comes first";
  bool custom = false, linear = false;
  for (const Json& row : json["operators"]) {
    if (row["op"] == "demo::scaled_gelu") custom = row["known"] == false && row["models"][0] == "custom_op";
    if (row["op"] == "aten::linear") linear = row["known"] == true && row["calls"] == 2;
  }
  EXPECT_TRUE(custom) << json;
  EXPECT_TRUE(linear) << json;
}

TEST(Ops, CoverageNamesWhatIsMissingWithItsCallsAndShare) {
  const Outcome outcome = run_program("ops --coverage tests/data/programs/custom_op.pt2");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("demo::scaled_gelu"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("of all calls, %"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(", all of 0 of 1 models\n"), std::string::npos) << outcome.out;
}

TEST(Ops, CoverageOfAKnownModelIsFine) {
  const Outcome outcome = run_program("ops --coverage tests/data/models/resnet18.pt2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_NE(outcome.out.find(", all of 1 of 1 models\n"), std::string::npos) << outcome.out;
}

TEST(Ops, OneThingAtATime) {
  expect_refusal("ops softmax --coverage a.pt2", "give one of WORD, --coverage and --replay");
  expect_refusal("ops --verbose", "--only, --framework and --verbose belong to --replay");
}

TEST(Ops, RecordingsThatAreNotThereAreRefused) {
  const Outcome outcome = run_program("ops --replay nowhere.log.gz");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("nowhere.log.gz"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace metaprof
