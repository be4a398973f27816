// Models with torch.cond, while_loop, scan and map on a device, as PyTorch ran them each way that data can decide
// (tools/record/record_control_flow.py): bytes of every phase of three steps; and what a report says where nobody chooses.

#include <gtest/gtest.h>

#include <map>

#include "estimate/estimate.h"
#include "estimate/prepare/model.h"
#include "estimate/results/verdict.h"
#include "reports/profile/profile_report.h"
#include "tests/recorded_phases.h"

namespace metaprof {
namespace {

const RecordedModels& recorded() {
  static const RecordedModels models("tests/data/control_flow/recorded.json");
  return models;
}

Model model_named(const std::string& name) {
  return read_model("tests/data/control_flow/models/" + name + ".pt2");
}

// Modes in which a model differs, with the reason.
const std::map<std::string, std::string> kDiffering = {
    {"recurrent train", "PyTorch divides gradients of scan's function into two graphs by a minimal cut"},
    {"decayed train", "the same"},
    {"decayed no-grad", "PyTorch's own scan() holds the turned slices until it has turned the results"},
    {"counted_on_the_host train",
     "what a node saved goes when it has run, and in PyTorch's graph after its last use"}};

// `way`: a condition, a number of trips, or nothing.
RunOptions options_of(const std::string& way) {
  RunOptions options;
  options.device = "h200";
  options.workspaces = "none";
  options.step.optimizer = "sgd";
  if (way == "true" || way == "false")
    options.step.condition = way;
  else if (!way.empty())
    options.step.trips = std::stoi(way);
  return options;
}

class ControlFlow : public ::testing::TestWithParam<std::string> {};

TEST_P(ControlFlow, TakesMemoryAsRecorded) {
  const Model model = model_named(GetParam());
  recorded().of(GetParam()).for_each_member([&](std::string_view mode, const Json& ways) {
    ways.for_each_member([&](std::string_view way, const Json& phases) {
      RunOptions options = options_of(std::string(way));
      options.step.mode = mode == "train" ? Mode::train : Mode::no_grad;
      const Estimate estimated = estimate(model, options);
      const std::string what = fmt::format("{} {}", mode, way);
      const bool differs = kDiffering.contains(fmt::format("{} {}", GetParam(), mode));
      if (differs) {
        EXPECT_NE(rows_of(estimated.report.memory.phases), rows_of(phases)) << what << ": now equal";
      } else {
        EXPECT_EQ(rows_of(estimated.report.memory.phases), rows_of(phases)) << what;
      }
      EXPECT_TRUE(estimated.report.memory.unmodelled.empty()) << what;
      EXPECT_FALSE(estimated.report.branches || estimated.report.loops) << what;
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Models, ControlFlow, ::testing::ValuesIn(recorded().names()),
                         [](const auto& info) { return info.param; });

TEST(BranchesReport, IsOfTheLargerPeakAndHasBoth) {
  const Model model = model_named("wide_or_narrow");
  const Estimate both = estimate(model, options_of(""));
  ASSERT_TRUE(both.report.branches);
  const BranchComparison& branches = *both.report.branches;
  EXPECT_TRUE(branches.shown);
  const auto alone = [&](const char* condition) {
    return execution_figures(estimate(model, options_of(condition)).report);
  };
  EXPECT_EQ(branches.when_true.peak, alone("true").peak);
  EXPECT_EQ(branches.when_false.peak, alone("false").peak);
  EXPECT_EQ(branches.when_true.flops, alone("true").flops);
  EXPECT_EQ(branches.when_false.flops, alone("false").flops);
  EXPECT_GT(branches.when_true.flops.count, branches.when_false.flops.count);
  EXPECT_EQ(both.report.memory.phases.peak.allocated_bytes.peak, branches.when_true.peak.count);
}

// The larger function is the second one, and ends before it has reached its peak.
TEST(BranchesReport, IsOfTheFunctionThatDoesNotFit) {
  RunOptions options = options_of("");
  options.memory = "90MiB";
  options.context = "none";
  const Estimate estimated = estimate(model_named("narrow_or_wide"), options);
  ASSERT_TRUE(estimated.report.branches);
  EXPECT_FALSE(estimated.report.branches->shown);
  EXPECT_FALSE(verdict_of(estimated.report).fits);
  EXPECT_EQ(estimated.options.step.condition, "false");
}

TEST(LoopsReport, IsOfOneTripAndHasTwoBesideIt) {
  const Model model = model_named("refined");
  const Estimate estimated = estimate(model, options_of(""));
  ASSERT_TRUE(estimated.report.loops);
  const LoopComparison& loops = *estimated.report.loops;
  const auto alone = [&](const char* trips) {
    return execution_figures(estimate(model, options_of(trips)).report);
  };
  EXPECT_EQ(loops.one_trip.peak, alone("1").peak);
  EXPECT_EQ(loops.two_trips.peak, alone("2").peak);
  EXPECT_EQ(loops.one_trip.flops, alone("1").flops);
  EXPECT_EQ(loops.two_trips.flops, alone("2").flops);
  EXPECT_EQ(estimated.report.memory.phases.peak.allocated_bytes.peak, loops.one_trip.peak.count);
  const std::string text = profile_text(estimated.report, {});
  EXPECT_NE(
      text.find("while_loop: how often it runs follows from data (this report assumes 1 trip; --trips N)"),
      std::string::npos);
}

// The number of trips is in the export as a symbol of offsets alone.
TEST(LoopsReport, AssumesTheTripsAndNoSize) {
  const std::vector<std::string> warnings = warnings_of(model_named("refined"), options_of(""));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(
                "data decide how often while_loop runs its body: one trip is assumed, and profile shows two "
                "beside it; --trips N says how many there are"),
            std::string::npos);
  EXPECT_TRUE(warnings_of(model_named("refined"), options_of("3")).empty());
}

TEST(Scan, SaysThatItsTrainingStepDiffers) {
  RunOptions options = options_of("");
  const std::vector<std::string> warnings = warnings_of(model_named("recurrent"), options);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(
                "PyTorch divides gradients of scan's function into two graphs by a minimal cut, which is not "
                "modelled"),
            std::string::npos);
  options.step.mode = Mode::no_grad;
  EXPECT_TRUE(warnings_of(model_named("recurrent"), options).empty());
}

}  // namespace
}  // namespace metaprof
