// The strategy "operators" against all ways there are: 2,000 random models of at most 14 modules and calls.

#include "estimate/plan/strategies/operator_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "estimate/plan/strategies/integer_program.h"
#include "tests/planner/module_tree.h"

namespace metaprof {
namespace {

// A model of a few kinds of modules with calls in them; nodes are its modules, without itself, and their calls.
class ModelMaker {
 public:
  explicit ModelMaker(uint32_t seed) : random_(seed) {}

  ModuleTree make(size_t most_nodes) {
    do {
      tree_ = {};
      for (int of = 0, classes = pick(2, 4); of < classes; ++of) add_class(of);
      add_module(tree_, static_cast<int32_t>(tree_.classes.size()) - 1, "m");
    } while (nodes() > most_nodes || tree_.modules.size() < 2);
    return tree_;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  size_t nodes() const {
    size_t count = tree_.modules.size() - 1;
    for (const Module& module : tree_.modules) count += tree_.classes[size_t(module.of)].calls.size();
    return count;
  }

  void add_class(int of) {
    ModuleClass& one = tree_.classes.emplace_back();
    one.saved = pick(0, 20);
    for (int call = 0, calls = one.saved > 0 ? pick(0, 3) : 0; call < calls; ++call) {
      one.calls.push_back({.op = "mm", .number = call, .bytes = pick(1, 8), .cost = {pick(1, 9), 0}});
      one.cost += one.calls.back().cost;
    }
    one.cost += {pick(0, 9), 0};
    for (int part = 0; part < of; ++part)
      if (const int count = pick(0, 2); count > 0) one.parts.push_back({part, count});
  }

  std::mt19937 random_;
  ModuleTree tree_;
};

// All that can be done with a module and what is inside it.
std::vector<PlanFigures> all_ways(const ModuleTree& tree, int32_t module) {
  std::vector<PlanFigures> ways = {{}};
  for (const int32_t inner : tree.modules[size_t(module)].inside) {
    std::vector<PlanFigures> sums;
    for (const PlanFigures& way : all_ways(tree, inner))
      for (const PlanFigures& before : ways)
        sums.push_back({before.saved + way.saved, before.cost + way.cost});
    ways = std::move(sums);
  }
  const ModuleClass& one = tree.classes[size_t(tree.modules[size_t(module)].of)];
  if (module == 0 || one.saved == 0) return ways;
  for (uint32_t kept = 0; kept < (1U << one.calls.size()); ++kept) {
    PlanFigures way{one.saved, one.cost};
    for (size_t call = 0; call < one.calls.size(); ++call)
      if ((kept >> call & 1) != 0) {
        way.saved -= one.calls[call].bytes;
        way.cost += {-one.calls[call].cost.flops, 0};
      }
    ways.push_back(way);
  }
  return ways;
}

PlanFigures figures_of(const ModuleTree& tree, const RecomputePlan& plan) {
  PlanFigures figures;
  for (const PlannedRegion& region : plan) {
    const ModuleClass& one = tree.classes[size_t(tree.modules[size_t(region.first)].of)];
    figures.saved += one.saved;
    figures.cost += one.cost;
    for (const int32_t call : region.kept) {
      figures.saved -= one.calls[size_t(call)].bytes;
      figures.cost += {-one.calls[size_t(call)].cost.flops, 0};
    }
  }
  return figures;
}

class OperatorPlansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!missing_solver().empty()) GTEST_SKIP() << missing_solver();
  }
};

TEST_F(OperatorPlansTest, AreTheCheapestOfAllThatSaveAsMuch) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const ModuleTree tree = ModelMaker(seed).make(14);
    const std::vector<PlanFigures> ways = all_ways(tree, 0);
    const int64_t most = std::ranges::max(ways, {}, &PlanFigures::saved).saved;
    const auto series = operator_plans(tree, {.plans = 4});
    ASSERT_EQ(series->size(), most > 0 ? 4u : 1u) << "seed " << seed;
    const size_t plan = series->size() == 1 ? 0 : 1 + seed % 3;
    const int64_t wanted = most * static_cast<int64_t>(plan) / 3;
    int64_t cheapest = INT64_MAX;
    for (const PlanFigures& way : ways)
      if (way.saved >= wanted) cheapest = std::min(cheapest, way.cost.flops);
    const PlanFigures figures = series->figures(plan);
    EXPECT_EQ(figures.cost.flops, cheapest) << "seed " << seed;
    EXPECT_GE(figures.saved, wanted) << "seed " << seed;
    EXPECT_EQ(series->gap(plan), 0) << "seed " << seed;
    // The modules that the plan names come to the same.
    EXPECT_EQ(figures_of(tree, series->plan(plan)).saved, figures.saved) << "seed " << seed;
    EXPECT_EQ(figures_of(tree, series->plan(plan)).cost, figures.cost) << "seed " << seed;
  }
}

// Four blocks of 10 bytes for 7; its mm gives 4 bytes for 5.
ModuleTree four_blocks() {
  ModuleTree tree;
  tree.classes = {{.type = "Block",
                   .saved = 10,
                   .bare = 1,
                   .cost = {7, 0},
                   .calls = {{.op = "mm", .number = 0, .bytes = 4, .cost = {5, 0}}},
                   .parts = {}},
                  {.type = "Model", .saved = 0, .bare = 0, .cost = {}, .calls = {}, .parts = {{0, 4}}}};
  tree.modules.push_back({.path = "", .of = 1, .inside = {1, 2, 3, 4}});
  for (int32_t block = 0; block < 4; ++block)
    tree.modules.push_back({.path = "h." + std::to_string(block), .of = 0, .inside = {}, .list = 0});
  return tree;
}

// 24 bytes: all four without their mm save 24 for 8; three whole ones 30 for 21.
TEST_F(OperatorPlansTest, LaterModulesKeepMore) {
  const ModuleTree tree = four_blocks();
  const auto series = operator_plans(tree, {.plans = 11});  // steps of 4 bytes
  EXPECT_EQ(series->figures(6).cost.flops, 8);
  const RecomputePlan plan = series->plan(7);  // 28 bytes: one block gives up its mm
  ASSERT_EQ(plan.size(), 4u);
  EXPECT_EQ(plan[0].kept, std::vector<int32_t>{});
  for (size_t block = 1; block < 4; ++block) EXPECT_EQ(plan[block].kept, std::vector<int32_t>{0});
}

// Two modules with three calls that are alike: only their number is chosen, and the last ones stay. Each saves
// 30 bytes, a result takes 4 of them. 45 of the 60 bytes: 3 results stay (12 bytes), all of the second module.
TEST_F(OperatorPlansTest, OfCallsThatAreAlikeTheLatestStay) {
  ModuleTree tree;
  const auto call = [](int32_t number) {
    return OperatorCall{.op = "mm", .number = number, .bytes = 4, .cost = {5, 0}};
  };
  tree.classes = {{.type = "Block",
                   .saved = 30,
                   .bare = 1,
                   .cost = {20, 0},
                   .calls = {call(0), call(1), call(2)},
                   .parts = {}},
                  {.type = "Model", .saved = 0, .bare = 0, .cost = {}, .calls = {}, .parts = {{0, 2}}}};
  tree.modules.push_back({.path = "", .of = 1, .inside = {1, 2}});
  for (int32_t block = 0; block < 2; ++block)
    tree.modules.push_back({.path = "h." + std::to_string(block), .of = 0, .inside = {}, .list = 0});
  const RecomputePlan three = operator_plans(tree, {.plans = 5})->plan(3);
  ASSERT_EQ(three.size(), 2u);
  EXPECT_EQ(three[0].kept, std::vector<int32_t>{});
  EXPECT_EQ(three[1].kept, (std::vector<int32_t>{0, 1, 2}));
  // 40 of the 60 bytes: 5 results stay.
  const RecomputePlan five = operator_plans(tree, {.plans = 7})->plan(4);
  ASSERT_EQ(five.size(), 2u);
  EXPECT_EQ(five[0].kept, (std::vector<int32_t>{1, 2}));
}

TEST_F(OperatorPlansTest, ALimitKeepsLargeModulesWhole) {
  const auto series = operator_plans(four_blocks(), {.largest = 9});
  EXPECT_EQ(series->size(), 1u);
}

TEST_F(OperatorPlansTest, WithoutTimeForTheSolverThereAreNoPlans) {
  EXPECT_EQ(operator_plans(four_blocks(), {.seconds = std::make_shared<double>(0)})->size(), 1u);
  EXPECT_GT(operator_plans(four_blocks(), {.seconds = std::make_shared<double>(1)})->size(), 1u);
}

// All bytes of results stay, three quarters of them … none. Four blocks save 40 bytes for 28.
TEST(KnapsackPlans, KeepTheDearestThatFit) {
  const ModuleTree tree = four_blocks();
  const auto series = knapsack_plans(tree, 5);
  ASSERT_EQ(series->size(), 5u);
  EXPECT_EQ(series->plan(0), RecomputePlan());
  for (size_t plan = 1; plan < 5; ++plan) {
    EXPECT_EQ(series->figures(plan).saved, 40 - 4 * (4 - int64_t(plan)));
    EXPECT_EQ(series->figures(plan).cost.flops, 28 - 5 * (4 - int64_t(plan)));
    EXPECT_EQ(figures_of(tree, series->plan(plan)).saved, series->figures(plan).saved);
  }
}

}  // namespace
}  // namespace metaprof
