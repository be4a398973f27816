// Each row of a sweep is what a run of its own would say, however much the runs of a sweep have in common.

#include "estimate/search/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "core/error.h"
#include "estimate/estimate.h"
#include "estimate/prepare/run_groups.h"
#include "estimate/search/shared_steps.h"
#include "reports/profile/profile_report.h"

namespace metaprof {
namespace {

// Each option with its values takes part in every second grid.
const std::vector<std::pair<std::string, std::vector<std::string>>>& choices() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kChoices = {
      {"device", {"h200", "a100", "rtx4090", "t4", "l40s", "rtx3090", "v100", "cpu"}},
      {"memory", {"64MiB", "400MiB", "3GiB", "80GiB"}},
      {"precision", {"fp32", "bf16", "amp-bf16", "amp-fp16"}},
      {"optimizer", {"none", "sgd", "sgd-momentum", "adam", "adamw", "adagrad", "radam", "asgd", "muon"}},
      {"optimizer_impl", {"default", "foreach", "for-loop", "fused"}},
      {"steps", {"1", "2", "3", "7"}},
      {"accumulate", {"1", "2"}},
      {"clip_norm", {"1"}},
      {"zero_grad_to_none", {"true", "false"}},
      {"mode", {"train", "train", "train", "no-grad"}},
      {"framework", {"2.11", "2.15", "2.6"}},
      {"context", {"none", "300MiB"}},
      {"margin", {"0%", "10%"}},
  };
  return kChoices;
}

Grid random_grid(std::mt19937& random) {
  Grid grid;
  size_t runs = 1;
  for (const auto& [name, values] : choices()) {
    if (random() % 2 == 0) continue;
    std::vector<std::string> some = values;
    std::ranges::shuffle(some, random);
    some.resize(std::min<size_t>(some.size(), 1 + random() % 3));
    if (runs * some.size() > 24) continue;
    runs *= some.size();
    std::string list;
    for (const std::string& value : some) list += (list.empty() ? "" : ",") + value;
    grid.add(run_option(name), list);
  }
  return grid;
}

void expect_equal(const SweepRow& row, const Model& model, const RunOptions& run,
                  WorkspacePlanners& planners) {
  std::optional<ProfileReport> own;
  std::string error;
  try {
    own = estimate(model, run, planners).report;
  } catch (const Error& failed) {
    error = failed.what();
  }
  EXPECT_EQ(row.error, error);
  if (!own) return;
  const AllocatorNumbers& peak = own->memory.phases.peak;
  EXPECT_EQ(row.allocated, peak.allocated_bytes.peak);
  EXPECT_EQ(row.requested, peak.requested_bytes.peak);
  EXPECT_EQ(row.reserved, peak.reserved_bytes.peak);
  EXPECT_EQ(row.fits, verdict_of(*own).fits);
  EXPECT_EQ(row.needed.value_or(-1), verdict_of(*own).at_least ? -1 : verdict_of(*own).reserved.count);
  EXPECT_EQ(row.parameter_bytes, own->memory.parameters.all.bytes.count);
  EXPECT_EQ(row.saved_bytes, own->memory.saved.bytes.count);
  const ByPhase<Flops>& flops = own->counts.total.counted;
  EXPECT_EQ(row.flops_forward, flops.forward.count);
  EXPECT_EQ(row.flops_backward, (flops.backward + flops.recompute).count);
  EXPECT_EQ(row.flops_recompute, flops.recompute.count);
}

std::string described(const RunOptions& run) {
  std::string text;
  for (const auto& [name, value] : shown_options(run)) text += name + "=" + to_text(value) + " ";
  return text;
}

class Sweep : public testing::TestWithParam<std::string> {};

// METAPROF_GRIDS: how many random grids for each model.
TEST_P(Sweep, RowsAreWhatRunsOfTheirOwnSay) {
  const Model model = read_model("tests/data/models/" + GetParam() + ".pt2");
  const char* given = std::getenv("METAPROF_GRIDS");
  const int grids = given ? std::atoi(given) : 3;
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam())));
  WorkspacePlanners planners;
  for (int i = 0; i < grids; ++i) {
    const Grid grid = random_grid(random);
    const std::vector<RunOptions> runs = combinations(grid);
    const SweepReport report = sweep(model, grid);
    ASSERT_EQ(report.rows.size(), runs.size());
    for (size_t row = 0; row < runs.size(); ++row) {
      SCOPED_TRACE(described(runs[row]));
      expect_equal(report.rows[row], model, runs[row], planners);
    }
  }
}

// The whole report, or the error.
std::string report_of(const Model& model, const RunOptions& run, WorkspacePlanners& planners,
                      StepsToRun steps) {
  try {
    ProfileReport report = estimate(model, run, planners, nullptr, steps).report;
    if (steps == StepsToRun::all) {
      EXPECT_EQ(report.steps_run, run.step.steps);
    }
    report.steps_run = 0;
    return profile_json(report);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_P(Sweep, ReportsAreTheSameWithoutStepsThatRepeat) {
  const Model model = read_model("tests/data/models/" + GetParam() + ".pt2");
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam() + " steps")));
  WorkspacePlanners planners;
  for (int i = 0; i < 8; ++i) {
    const std::vector<RunOptions> runs = combinations(random_grid(random));
    const RunOptions& run = runs[random() % runs.size()];
    SCOPED_TRACE(described(run));
    EXPECT_EQ(report_of(model, run, planners, StepsToRun::until_alike),
              report_of(model, run, planners, StepsToRun::all));
  }
}

TEST(StepsThatRepeat, AreLeftOut) {
  const Model model = read_model("tests/data/models/mlp.pt2");
  WorkspacePlanners planners;
  RunOptions run;
  run.step.steps = 100;
  EXPECT_EQ(estimate(model, run, planners, nullptr, StepsToRun::until_alike).report.steps_run, 2)
      << "the first makes the optimizer's state";
  run.step.optimizer = "radam";
  run.step.optimizer_impl = OptimizerImpl::for_loop;
  EXPECT_GT(estimate(model, run, planners, nullptr, StepsToRun::until_alike).report.steps_run, 5)
      << "which rectifies from its sixth step on";
}

INSTANTIATE_TEST_SUITE_P(Models, Sweep,
                         testing::Values("mlp", "resnet18.b1", "gpt2.b1.s64", "lstm_lm", "dlrm",
                                         "autoencoder", "gru_classifier", "inplace_views", "lora_mlp",
                                         "mha_weights", "tied_lm", "tiny_llama", "tiny_mixtral", "nerf",
                                         "transformer_encoder", "checkpoint_mlp", "mobilenet_v3_small",
                                         "distilbert", "linear_regression", "dcgan_generator"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(RunGroups, OptimizerAndMemoryDoNotSeparateRuns) {
  Grid grid;
  grid.add(run_option("optimizer"), "sgd,adamw");
  grid.add(run_option("memory"), "8GiB,24GiB");
  grid.add(run_option("device"), "h200,t4");
  grid.add(run_option("batch"), "1,2");
  const std::vector<RunGroup> groups = group_runs(combinations(grid));
  ASSERT_EQ(groups.size(), 2U);  // a batch each
  for (const RunGroup& group : groups) {
    EXPECT_EQ(group.runs.size(), 8U);
    EXPECT_EQ(group.optimizers.size(), 2U);  // sgd, adamw
  }
}

// GPT-2 in fp32 asks whether attention's kernels run there and how they align, how large cuBLAS's workspace is, and how
// many blocks reduce its sums. An A100, an RTX 4090 and an H200 agree but for the size of the workspace and of the sums'
// buffers, on which nothing else depends; a T4's kernels align less.
TEST(SharedSteps, HoldOnDevicesThatAnswerAlike) {
  const Model model = read_model("tests/data/models/gpt2.b1.s64.pt2");
  RunOptions run;
  run.device = "a100";
  const auto on = [&](const char* device) {
    RunOptions other = run;
    other.device = device;
    return platform_of(other, model.program);
  };
  WorkspacePlanners planners;
  const OptimizerChoice adamw{"adamw", OptimizerImpl::standard};
  const auto steps = SharedSteps::run(model.program, run, on("a100"), {&adamw, 1}, planners);
  ASSERT_TRUE(steps);
  EXPECT_TRUE(steps->hold_on(on("a100")));
  EXPECT_TRUE(steps->hold_on(on("rtx4090")));
  EXPECT_TRUE(steps->hold_on(on("h200")));
  EXPECT_FALSE(steps->hold_on(on("t4")));
  EXPECT_FALSE(steps->hold_on(on("cpu")));
}

}  // namespace
}  // namespace metaprof
