// Models with torch.cond on a device, as PyTorch ran them with each condition (tools/record_branches.py): bytes of every
// phase of three steps; and what a report says where nobody chooses.

#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "reports/profile/profile_report.h"
#include "tests/recorded_phases.h"

namespace metaprof {
namespace {

const RecordedModels& recorded() {
  static const RecordedModels models("tests/data/branches/recorded.json");
  return models;
}

Model model_named(const std::string& name) {
  return read_model("tests/data/branches/models/" + name + ".pt2");
}

RunOptions options_of(const std::string& condition) {
  RunOptions options;
  options.device = "h200";
  options.workspaces = "none";
  options.step.optimizer = "sgd";
  options.step.condition = condition;
  return options;
}

class Branches : public ::testing::TestWithParam<std::string> {};

TEST_P(Branches, TakeMemoryAsRecorded) {
  const Model model = model_named(GetParam());
  for (const char* condition : {"true", "false"}) {
    const Estimate estimated = estimate(model, options_of(condition));
    EXPECT_EQ(rows_of(estimated.report.memory.phases), rows_of(recorded().of(GetParam()).at(condition)))
        << condition;
    EXPECT_TRUE(estimated.report.memory.unmodelled.empty());
    EXPECT_FALSE(estimated.report.branches);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Branches, ::testing::ValuesIn(recorded().names()),
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

}  // namespace
}  // namespace metaprof
