#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGpt2 = "tests/data/models/gpt2.pt2";
const std::string kQuick = " --steps 2 --workspaces none";

Json plan(const std::string& words, int exit_code) {
  const Outcome outcome = run_program("plan " + words + kQuick + " --json -");
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  return Json::parse(outcome.out);
}

std::string joined(const Json& patterns) {
  std::string words;
  for (const Json& pattern : patterns) words += (words.empty() ? "" : " ") + pattern.get<std::string>();
  return words;
}

// A plan is no estimate: the step was run with it.
TEST(Plan, EveryPlanHasTheFiguresOfAProfileWithItsPatterns) {
  for (const std::string model : {"gpt2", "resnet50", "unet"}) {
    const std::string words = "tests/data/models/" + model + ".pt2";
    const Json json = plan(words + " --budget 80%", 0);
    EXPECT_EQ(json["schema"], "metaprof.plan");
    EXPECT_TRUE(json["holds"].get<bool>()) << model;
    EXPECT_LE(json["peak"], json["budget"]) << model;
    const Json profile = Json::parse(run_program("profile " + words + kQuick + " --checkpoint '" +
                                                 joined(json["checkpoint"]) + "' --json -")
                                         .out);
    EXPECT_EQ(json["peak"], profile["peak"]["allocated_bytes"]) << model;
    EXPECT_EQ(json["reserved"], profile["peak"]["reserved_bytes"]) << model;
    EXPECT_EQ(json["recompute_flops"], profile["flops"]["recompute"]) << model;
  }
}

TEST(Plan, NothingIsComputedAgainWhereTheBudgetSuffices) {
  const Json json = plan(kGpt2 + " --budget 100%", 0);
  EXPECT_EQ(json["checkpoint"], Json::array());
  EXPECT_EQ(json["recompute_flops"], 0);
  EXPECT_EQ(json["peak"], json["budget"]);
  EXPECT_EQ(json["runs"], 1);
}

TEST(Plan, ASmallerBudgetCostsMore) {
  // At 90 % activation functions suffice, whose FLOPs the framework does not count.
  const Json first = plan(kGpt2 + " --strategy modules --budget 90%", 0);
  EXPECT_EQ(first["recompute_flops"], 0);
  EXPECT_GT(first["recompute_seconds"], 0);
  int64_t before = 0;
  for (const char* budget : {"80%", "70%", "60%"}) {
    const Json json = plan(kGpt2 + " --strategy modules --budget " + budget, 0);
    EXPECT_GT(json["recompute_flops"].get<int64_t>(), before) << budget;
    before = json["recompute_flops"];
  }
}

TEST(Plan, ATextNamesThePatternsAndTheModules) {
  const Outcome outcome = run_program("plan " + kGpt2 + " --budget 80%" + kQuick);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("HOLDS gpt2: ")) << outcome.out;
  EXPECT_NE(outcome.out.find(" with --checkpoint 'model.transformer.h."), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nmodules "), std::string::npos) << outcome.out;
}

// One line, and the figures that say how far it is.
TEST(Plan, WhatIsImpossibleIsALineAndAFinding) {
  const auto line = [](const std::string& words) {
    const Outcome outcome = run_program("plan " + words + kQuick);
    EXPECT_EQ(outcome.exit_code, 1) << words;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
    return outcome.out;
  };
  // Parameters, gradients, two states and what the step of AdamW makes: 475.5 MiB each, and the loss's logits.
  EXPECT_EQ(
      line(kGpt2 + " --budget 20%"),
      "IMPOSSIBLE gpt2: parameters, gradients and the optimizer's step take 2.4 GiB when nothing is kept for "
      "backward, more than the budget of 948.7 MiB: nothing computed again helps\n");
  EXPECT_EQ(
      line(kGpt2 + " --strategy modules --budget 55%"),
      "IMPOSSIBLE gpt2: no plan stays within 2.5 GiB; the smallest peak that any plan reached is 2.7 GiB\n");
  EXPECT_EQ(line(kGpt2 + " --budget 100MiB"),
            "IMPOSSIBLE gpt2: parameters, buffers and inputs alone take 475.5 MiB, more than the budget of "
            "100.0 MiB\n");
  // Only what a loss makes is kept, and it lies in no module.
  EXPECT_EQ(
      line("tests/data/models/linear_regression.pt2 --budget 97% --batch 4000000"),
      "IMPOSSIBLE linear_regression: no module keeps anything that could be computed again; the step needs "
      "342.4 MiB, more than the budget of 332.1 MiB\n");
  const Json json = plan(kGpt2 + " --budget 20%", 1);
  EXPECT_FALSE(json["holds"].get<bool>());
  EXPECT_GT(json["peak"], json["budget"]);
}

// Each strategy's plan is run; the exact ones are no worse than what they are compared with.
TEST(Plan, EveryStrategyHasARow) {
  for (const std::string model : {"gpt2"}) {
    const std::string words = "tests/data/models/" + model + ".pt2 --budget 70%";
    const Json json = plan(words + " --strategy all", 0);
    std::map<std::string, Json> rows;
    for (const Json& row : json["strategies"]) rows[row["strategy"]] = row;
    EXPECT_EQ(rows.size(), 5u);
    for (const auto& [strategy, row] : rows) {
      EXPECT_EQ(row["holds"], row["peak"] <= json["budget"]) << model << " " << strategy;
      const Json profile =
          Json::parse(run_program("profile tests/data/models/" + model + ".pt2" + kQuick + " --checkpoint '" +
                                  joined(row["checkpoint"]) + "' --json -")
                          .out);
      EXPECT_EQ(row["peak"], profile["peak"]["allocated_bytes"]) << model << " " << strategy;
      EXPECT_EQ(row["recompute_flops"], profile["flops"]["recompute"]) << model << " " << strategy;
    }
    for (const char* exact : {"modules", "operators"}) EXPECT_TRUE(rows[exact]["holds"].get<bool>()) << model;
    for (const auto& [other, row] : rows) {
      if (!row["holds"].get<bool>()) continue;
      EXPECT_LE(rows["operators"]["recompute_flops"], row["recompute_flops"]) << model << " " << other;
    }
    EXPECT_EQ(rows["operators"]["gap"], 0) << model;
  }
}

TEST(Plan, RefusalsSayWhatIsMissing) {
  expect_refusal(
      "plan " + kGpt2 + " --budget 60% --strategy operator",
      "--strategy: 'operator' is not one of: all, modules, chain, operators, square-root, knapsack; did "
      "you mean 'operators'?");
  expect_refusal("plan " + kGpt2,
                 "--budget: how much memory may the step take? As 24GiB, or 60% of what it needs now");
  expect_refusal("plan " + kGpt2 + " --budget 1GiB --mode eval",
                 "--mode: eval has no backward, so nothing is kept that could be computed again");
  expect_refusal("plan " + kGpt2 + " --budget 1GiB --checkpoint 'h.*'",
                 "--checkpoint: is what plan looks for");
  expect_refusal(
      "plan tests/data/captured/checkpoints.mp --budget 1GiB",
      "checkpoints: was captured from a run, whose steps are its own: nothing of it can be planned");
  expect_refusal("plan tests/data/traces/two_layers.trace --budget 1GiB",
                 "two_layers: a trace is a run that was: nothing of it can be planned");
}

TEST(Checkpoint, SeveralPatternsAreTheModulesOfAll) {
  const auto profile = [](const std::string& patterns) {
    return Json::parse(
        run_program("profile " + kGpt2 + kQuick + " --json - --checkpoint '" + patterns + "'").out)["peak"];
  };
  EXPECT_EQ(profile("model.transformer.h.0 model.transformer.h.1"), profile("model.transformer.h.[0-1]"));
  // Of modules inside each other the outermost counts.
  EXPECT_EQ(profile("model.transformer.h.0 model.transformer.h.0.attn"), profile("model.transformer.h.0"));
  expect_refusal("profile " + kGpt2 + " --checkpoint 'model.transformer.h.0 model.h'",
                 "--checkpoint: no module of gpt2 matches 'model.h'; its layers are 'model.transformer.h.*'");
}

}  // namespace
}  // namespace metaprof
