#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGpt2 = "tests/data/models/gpt2.pt2";

Json advice(const std::string& words, int exit_code) {
  const Outcome outcome = run_program("advise " + words + " --json -");
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return Json::parse(outcome.out);
}

// The options of a row as words of the command line.
std::string words_of(const Json& changes) {
  std::string words;
  for (const auto& [name, value] : changes.items()) {
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    words += " --" + option + (value == "true" ? "" : " '" + value.get<std::string>() + "'");
  }
  return words;
}

TEST(Advise, EveryFigureIsThatOfAProfile) {
  const Json json = advice(kGpt2 + " --steps 2", 0);
  EXPECT_EQ(json["schema"], "metaprof.advise");
  ASSERT_GE(json["rows"].size(), 6u);
  for (const Json& row : json["rows"]) {
    const Outcome outcome =
        run_program("profile " + kGpt2 + " --steps 2 --json -" + words_of(row["changes"]));
    const Json profile = Json::parse(outcome.out);
    EXPECT_EQ(row["peak"], profile["peak"]["allocated_bytes"]) << row;
    EXPECT_EQ(row["reserved"], profile["peak"]["reserved_bytes"]) << row;
    EXPECT_EQ(row["fits"], profile["fits"]) << row;
  }
}

// What does not fit as it is fits with what is advised.
TEST(Advise, TheBestCombinationFits) {
  const std::string words = kGpt2 + " --memory 4GiB --steps 2";
  EXPECT_EQ(run_program("profile " + words).exit_code, 1);
  const Json json = advice(words, 0);
  EXPECT_FALSE(json["base"]["fits"].get<bool>());
  EXPECT_TRUE(json["best"]["fits"].get<bool>());
  EXPECT_EQ(run_program("profile " + words + words_of(json["best"]["changes"])).exit_code, 0) << json["best"];
  const Outcome text = run_program("advise " + words);
  EXPECT_TRUE(text.out.starts_with("DOES NOT FIT h200: needs ")) << text.out;
  EXPECT_NE(text.out.find(". It fits with --"), std::string::npos) << text.out;
}

TEST(Advise, NothingHelpsIsAFinding) {
  EXPECT_FALSE(advice(kGpt2 + " --memory 600MiB --steps 1", 1)["best"]["fits"].get<bool>());
}

TEST(Advise, ATraceHasNoSwitches) {
  expect_refusal("advise tests/data/traces/two_layers.trace",
                 "two_layers: a trace is a run that was: it has no switches");
}

}  // namespace
}  // namespace metaprof
