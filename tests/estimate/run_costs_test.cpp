// FLOPs and time of a program that was run are those that a profile of its captured program has.

#include "estimate/run_costs.h"

#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "estimate/prepare/captured_run.h"

namespace metaprof {
namespace {

const std::string kProgram = "tests/data/captured/checkpoints.mp";

TEST(RunCosts, AreThoseOfTheCapturedProgram) {
  const Model model = read_model(kProgram);
  const RunCosts costs = costs_of_run({{3, model.program}, {5, model.program}});
  EXPECT_EQ(costs.unknown, "");
  ASSERT_EQ(costs.by_rank.size(), 2u);
  const Counts expected = estimate(model, as_captured({}, model.program)).report.counts;
  EXPECT_GT(expected.total.counted.forward.count, 0);
  EXPECT_EQ(costs.by_rank.at(5).total.counted, expected.total.counted);
  EXPECT_EQ(costs.by_rank.at(3).expected.total(), expected.expected.total());
}

TEST(RunCosts, OfAProgramThatTheEngineCannotRunAreNotKnown) {
  Model model = read_model(kProgram);
  for (GraphNode& node : model.program.graph.nodes)
    if (node.op == "aten::linear") node.operands.pop_back();
  const RunCosts costs = costs_of_run({{3, model.program}});
  EXPECT_TRUE(costs.by_rank.empty());
  EXPECT_TRUE(costs.unknown.starts_with("FLOPs and time of rank 3 are not known: ")) << costs.unknown;
}

}  // namespace
}  // namespace metaprof
