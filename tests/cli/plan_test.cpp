#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/read_file.h"

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

std::string temporary(const std::string& name) {
  return testing::TempDir() + "metaprof_plan_" + std::to_string(getpid()) + "_" + name;
}

std::string write_file(const std::string& name, const std::string& text) {
  std::string file = temporary(name);
  std::ofstream(file) << text;
  return file;
}

std::string joined(const Json& patterns) {
  std::string words;
  for (const Json& pattern : patterns) words += (words.empty() ? "" : " ") + pattern.get<std::string>();
  return words;
}

Json profiled(const std::string& words, const Json& patterns) {
  std::string command = "profile " + words;
  command.append(kQuick).append(" --checkpoint '").append(joined(patterns)).append("' --json -");
  return Json::parse(run_program(command).out);
}

// A plan is no estimate: the step was run with it.
TEST(Plan, EveryPlanHasTheFiguresOfAProfileWithItsPatterns) {
  for (const std::string model : {"gpt2", "resnet50", "unet"}) {
    const std::string words = "tests/data/models/" + model + ".pt2";
    const Json json = plan(words + " --budget 80%", 0);
    EXPECT_EQ(json["schema"], "metaprof.plan");
    EXPECT_TRUE(json["holds"].get<bool>()) << model;
    EXPECT_LE(json["peak"], json["budget"]) << model;
    const Json profile = profiled(words, json["checkpoint"]);
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
      "backward, more than the budget of 948.7 MiB: recomputation cannot help\n");
  EXPECT_EQ(
      line(kGpt2 + " --strategy modules --budget 57%"),
      "IMPOSSIBLE gpt2: no plan stays within 2.6 GiB; the smallest peak that any plan reached is 2.7 GiB\n");
  EXPECT_EQ(line(kGpt2 + " --budget 100MiB"),
            "IMPOSSIBLE gpt2: parameters, buffers and inputs alone take 475.5 MiB, more than the budget of "
            "100.0 MiB\n");
  // Only what a loss makes is kept, and it lies in no module.
  EXPECT_EQ(line("tests/data/models/linear_regression.pt2 --budget 97% --batch 4000000"),
            "IMPOSSIBLE linear_regression: no module keeps anything that could be recomputed; the step needs "
            "342.4 MiB, more than the budget of 332.1 MiB\n");
  // What log_softmax gave, its gradient and that of its input: 16·512 × 50,257 floats each, 1,570.5 MiB, and 475 MiB of
  // parameters, together 5,186 MiB.
  EXPECT_EQ(
      line(kGpt2 + " --budget 35% --batch 16 --optimizer sgd"),
      "IMPOSSIBLE gpt2: one call of aten::_log_softmax_backward_data takes 5.1 GiB with its operands and "
      "what is alive then in every plan, more than the budget of 4.6 GiB: recomputation cannot help\n");
  const Json json = plan(kGpt2 + " --budget 20%", 1);
  EXPECT_FALSE(json["holds"].get<bool>());
  EXPECT_GT(json["peak"], json["budget"]);
}

// Each strategy's plan is run; the exact ones are no worse than what they are compared with.
TEST(Plan, EveryStrategyHasARow) {
  for (const std::string model : {"gpt2", "resnet50"}) {
    const std::string words = "tests/data/models/" + model + ".pt2 --budget 70%";
    const Json json = plan(words + " --strategy all", 0);
    std::map<std::string, Json> rows;
    for (const Json& row : json["strategies"]) rows[row["strategy"]] = row;
    EXPECT_EQ(rows.size(), 7u);
    for (const auto& [strategy, row] : rows) {
      EXPECT_EQ(row["holds"], row["peak"] <= json["budget"]) << model << " " << strategy;
      EXPECT_GE(row["peak"], json["least_bytes"]) << model << " " << strategy;
      EXPECT_EQ(row["gap"].is_null(), strategy != "operators") << model << " " << strategy;
      const Json profile = profiled("tests/data/models/" + model + ".pt2", row["checkpoint"]);
      EXPECT_EQ(row["peak"], profile["peak"]["allocated_bytes"]) << model << " " << strategy;
      EXPECT_EQ(row["recompute_flops"], profile["flops"]["recompute"]) << model << " " << strategy;
    }
    for (const char* exact : {"modules", "operators"}) EXPECT_TRUE(rows[exact]["holds"].get<bool>()) << model;
    for (const auto& [other, row] : rows) {
      if (!row["holds"].get<bool>() || other == "offload") continue;  // which takes time in place of FLOPs
      EXPECT_LE(rows["operators"]["recompute_flops"], row["recompute_flops"]) << model << " " << other;
    }
    EXPECT_EQ(rows["operators"]["gap"], 0) << model;
  }
}

// A Sequential with activations that write to their input: a stretch that begins with one cannot be computed again.
TEST(Plan, StretchesDoNotBeginWithWhatWritesToItsInput) {
  const Json json = plan("tests/data/models/vgg16.pt2 --optimizer sgd --strategy chain --budget 90%", 0);
  EXPECT_TRUE(json["holds"].get<bool>());
}

TEST(Plan, RefusalsSayWhatIsMissing) {
  expect_refusal("plan " + kGpt2 + " --budget 60% --strategy operator",
                 "--strategy: 'operator' is not one of: all, modules, chain, operators, offload, "
                 "rotor, square-root, knapsack; did you "
                 "mean 'operators'?");
  expect_refusal("plan " + kGpt2,
                 "--budget: how much memory may the step take? As 24GiB, or 60% of what it needs now");
  expect_refusal("plan " + kGpt2 + " --budget 1GiB --mode eval",
                 "--mode: eval has no backward, so nothing is kept that could be recomputed");
  expect_refusal("plan " + kGpt2 + " --budget 1GiB --checkpoint 'h.*'",
                 "--checkpoint: is what plan looks for");
  expect_refusal(
      "plan tests/data/captured/checkpoints.mp --budget 1GiB --strategy chain",
      "--strategy chain: checkpoints was captured from a run: only whole modules can be recomputed "
      "(modules)");
  expect_refusal("plan " + kGpt2 + " --budget 1GiB --svg " + temporary("curve.svg"),
                 "--svg shows the curve of --pareto: give --pareto, too");
  expect_refusal("plan tests/data/traces/two_layers.trace --budget 1GiB",
                 "two_layers: a trace is a run that was: nothing of it can be planned");
}

// What a captured program did once it can be asked to do otherwise: its own four checkpointed layers are computed again.
TEST(Plan, OfCapturedProgramsAndConfigurations) {
  const Outcome captured = run_program("plan tests/data/captured/checkpoints.mp --budget 100% --json -");
  EXPECT_EQ(captured.exit_code, 0) << captured.err;
  EXPECT_EQ(Json::parse(captured.out)["strategies"][0]["strategy"], "modules");
  const Json json = plan(
      "tests/data/configs/exports/gpt2.json --batch 8 --sequence 512 --budget 80% --strategy modules", 0);
  EXPECT_TRUE(json["holds"].get<bool>());
  EXPECT_FALSE(json["checkpoint"].empty());
}

// Blocks that repeat are measured once, and how many there are is looked for by halves: four times as many take a few
// runs of the step more.
TEST(Plan, RunsGrowWithKindsOfLayersNotWithLayers) {
  const std::string config = read_file("tests/data/configs/exports/gpt2.json");
  const std::string layers = "\"n_layer\": 12";
  ASSERT_NE(config.find(layers), std::string::npos);
  std::map<int, int64_t> runs;
  for (const int count : {2, 8, 32}) {
    std::string text = config;
    text.replace(text.find(layers), layers.size(), "\"n_layer\": " + std::to_string(count));
    const std::string file = write_file("layers.json", text);
    const Json json =
        plan(file + " --batch 8 --sequence 256 --optimizer sgd --strategy modules --budget 80%", 0);
    EXPECT_FALSE(json["checkpoint"].empty()) << count;
    runs[count] = json["runs"];
  }
  EXPECT_LT(runs[8], 2 * runs[2]);
  EXPECT_LT(runs[32], 2 * runs[2]);
}

// Nothing is computed again; what is saved goes to the host and comes back.
TEST(Plan, OffloadSaysWhatGoesOverTheBus) {
  const Json json = plan(kGpt2 + " --strategy offload --budget 80%", 0);
  EXPECT_EQ(json["recompute_flops"], 0);
  EXPECT_NE(joined(json["checkpoint"]).find("{>host}"), std::string::npos);
  // A layer norm saves its input (4·512·768 floats), mean and deviation (4·512 each), weight and bias (768 each), all of
  // which go there and come back; PCI Express 5 of an H200: 16 lanes of 32 GT/s, 128 of 130 bits.
  const std::string norm =
      write_file("norm.json", R"({"checkpoint": ["model.transformer.h.0.ln_1{>host}"]})");
  const Json one = plan(kGpt2 + " --budget 100% --plan " + norm, 0);
  const int64_t bytes = int64_t{2} * 4 * (4 * 512 * 768 + 2 * 4 * 512 + 2 * 768);
  EXPECT_EQ(one["bus_bytes"], bytes);
  EXPECT_NEAR(one["recompute_seconds"], static_cast<double>(bytes) / (16 * 32e9 / 8 * 128 / 130), 1e-9);
  const Outcome text = run_program("plan " + kGpt2 + " --strategy offload,modules --budget 80%" + kQuick);
  EXPECT_NE(text.out.find(" over the bus "), std::string::npos) << text.out;
}

TEST(Plan, OthersPlansAreRunAsTheyAre) {
  const std::string file =
      write_file("theirs.json", R"({"strategy": "theirs", "checkpoint": ["model.transformer.h.*"]})");
  const Json json = plan(kGpt2 + " --budget 80% --plan " + file, 0);
  EXPECT_EQ(json["strategies"].size(), 1u);
  EXPECT_EQ(json["strategy"], "theirs");
  const Json profile = Json::parse(
      run_program("profile " + kGpt2 + kQuick + " --checkpoint 'model.transformer.h.*' --json -").out);
  EXPECT_EQ(json["peak"], profile["peak"]["allocated_bytes"]);
  EXPECT_EQ(json["recompute_flops"], profile["flops"]["recompute"]);

  // What --json wrote is such a file; ours are looked for beside it where they are asked for.
  const std::string ours = temporary("ours.json");
  EXPECT_EQ(
      run_program("plan " + kGpt2 + " --budget 80% --strategy modules --json " + ours + kQuick).exit_code, 0);
  const Json again = plan(kGpt2 + " --budget 80% --strategy modules --plan " + ours + " --plan " + file, 0);
  ASSERT_EQ(again["strategies"].size(), 3u);
  EXPECT_EQ(again["strategies"][0]["peak"], again["strategies"][1]["peak"]);
  EXPECT_EQ(again["strategies"][0]["checkpoint"], again["strategies"][1]["checkpoint"]);

  const auto refused = [](const std::string& text, const std::string& message) {
    const std::string bad = write_file("bad.json", text);
    expect_refusal("plan " + kGpt2 + " --budget 80% --plan " + bad, bad + ": " + message);
  };
  refused(R"({"checkpoint": 3})", "checkpoint: expected a list, got a number");
  refused("[]", "expected an object, got a list");
  refused(R"({"strategy": "a"})", "checkpoint is missing");
  refused(R"({"checkpoint": ["h.*"]})",
          "the plan '" + std::filesystem::path(temporary("bad")).filename().string() +
              "' cannot be run: --checkpoint: no module of gpt2 matches 'h.*'; its layers are "
              "'model.transformer.h.*'");
}

// Each point costs more than the one before it and takes less; each is a plan that was run.
TEST(Plan, TheCurveGoesDown) {
  const std::string svg = temporary("curve.svg"), html = temporary("curve.html");
  const Json json = plan(kGpt2 + " --pareto --strategy modules --svg " + svg + " --html " + html, 0);
  const Json& curve = json["curve"];
  ASSERT_GT(curve.size(), 5u);
  EXPECT_EQ(curve[0]["strategy"], "none");
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LT(curve[i]["peak"], curve[i - 1]["peak"]);
    EXPECT_GE(curve[i]["recompute_flops"], curve[i - 1]["recompute_flops"]);
  }
  const Json& last = curve.back();
  const Json profile = Json::parse(
      run_program("profile " + kGpt2 + kQuick + " --checkpoint '" + joined(last["checkpoint"]) + "' --json -")
          .out);
  EXPECT_EQ(last["peak"], profile["peak"]["allocated_bytes"]);
  EXPECT_TRUE(read_file(svg).starts_with("<svg"));
  EXPECT_NE(read_file(html).find("<svg"), std::string::npos);
  const Outcome text = run_program("plan " + kGpt2 + " --pareto --strategy modules" + kQuick);
  EXPECT_TRUE(text.out.starts_with("CURVE gpt2: from ")) << text.out;
}

TEST(Plan, FilesHaveTheirForm) {
  const std::string json = temporary("plan.json"), costs = temporary("costs.json"),
                    python = temporary("plan.py");
  EXPECT_EQ(
      run_program("plan " + kGpt2 + kQuick + " --budget 80% --strategy modules,offload --pareto --json " +
                  json + " --costs " + costs + " --python " + python)
          .exit_code,
      0);
  for (const auto& [schema, file] : {std::pair("plan", json), std::pair("plan_costs", costs)}) {
    const int status = std::system((METAPROF_PYTHON " tests/validate_json.py reports/schema/" +
                                    std::string(schema) + ".schema.json " + file)
                                       .c_str());
    EXPECT_EQ(status, 0) << file;
  }
  const std::string plan = read_file(python);
  EXPECT_NE(plan.find("\nPLAN = (\n    \"model.transformer.h."), std::string::npos) << plan;
  EXPECT_EQ(std::system((METAPROF_PYTHON " -m py_compile " + python).c_str()), 0);
}

// The largest batch with a plan is no smaller than without, and a profile with that plan fits as the row says.
TEST(Plan, FitFindsALargerBatch) {
  const std::string words = kGpt2 + " --device t4 --optimizer sgd" + kQuick;
  const auto row_of = [&](const std::string& more) {
    return Json::parse(run_program("fit " + words + more + " --json -").out)["rows"][0];
  };
  const Json without = row_of(""), row = row_of(" --plan");
  EXPECT_GT(row["largest"], without["largest"]);
  EXPECT_EQ(without["checkpoint"], Json::array());
  ASSERT_FALSE(row["checkpoint"].empty());
  const Json profile = Json::parse(run_program("profile " + words + " --batch " + row["largest"].dump() +
                                               " --checkpoint '" + joined(row["checkpoint"]) + "' --json -")
                                       .out);
  EXPECT_EQ(row["peak_allocated_bytes"], profile["peak"]["allocated_bytes"]);
  EXPECT_EQ(row["peak_reserved_bytes"], profile["peak"]["reserved_bytes"]);
  EXPECT_LE(row["peak_reserved_bytes"], row["memory_bytes"]);
  expect_refusal("fit " + words + " --plan --checkpoint 'model.transformer.h.*'",
                 "--checkpoint: is what --plan looks for; leave one of them out");
  expect_refusal("fit " + words + " --plan --mode eval",
                 "--plan: only a training step keeps what could be recomputed; leave --mode out");
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
