// The strategy "modules" against all ways there are: random trees of few modules.

#include "estimate/plan/strategies/module_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/planner/module_tree.h"

namespace metaprof {
namespace {

// A tree of which every module is as its class says.
class TreeMaker {
 public:
  explicit TreeMaker(uint32_t seed) : random_(seed) {}

  ModuleTree make(size_t most_modules) {
    do {
      tree_ = {};
      for (int of = 0, classes = pick(1, 4); of < classes; ++of) add_class(of);
      tree_.modules.clear();
      add_module(tree_, static_cast<int32_t>(tree_.classes.size()) - 1, "");
    } while (tree_.modules.size() > most_modules);
    return tree_;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void add_class(int of) {
    ModuleClass& one = tree_.classes.emplace_back();
    one.saved = pick(0, 20);
    one.cost = {pick(0, 20), pick(0, 3) * 0.25};
    for (int part = 0; part < of; ++part)
      if (const int count = pick(0, 3); count > 0) one.parts.push_back({part, count});
  }

  std::mt19937 random_;
  ModuleTree tree_;
};

// Whether no chosen module lies in another, and none is the model.
bool is_plan(const ModuleTree& tree, const std::vector<bool>& chosen) {
  std::vector<bool> within(tree.modules.size());
  for (size_t i = 0; i < tree.modules.size(); ++i) {
    if (chosen[i] && (i == 0 || within[i])) return false;
    for (const int32_t inner : tree.modules[i].inside) within[size_t(inner)] = within[i] || chosen[i];
  }
  return true;
}

PlanFigures figures_of(const ModuleTree& tree, const std::vector<bool>& chosen) {
  PlanFigures figures;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    figures.saved += tree.classes[size_t(tree.modules[i].of)].saved;
    figures.cost += tree.classes[size_t(tree.modules[i].of)].cost;
  }
  return figures;
}

std::vector<PlanFigures> all_plans(const ModuleTree& tree) {
  std::vector<PlanFigures> plans;
  for (uint32_t set = 0; set < (1U << tree.modules.size()); ++set) {
    std::vector<bool> chosen(tree.modules.size());
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = (set >> i & 1) != 0;
    if (is_plan(tree, chosen)) plans.push_back(figures_of(tree, chosen));
  }
  return plans;
}

TEST(ModulePlans, EveryPlanIsTheCheapestOfAllThatSaveAsMuch) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ModuleTree tree = TreeMaker(seed).make(12);
    const auto series = module_plans(tree, {.plans = 1 << 20});
    int64_t most = 0;
    for (const PlanFigures& any : all_plans(tree)) {
      most = std::max(most, any.saved);
      size_t plan = 0;
      while (plan < series->size() && series->figures(plan).saved < any.saved) ++plan;
      ASSERT_LT(plan, series->size()) << "seed " << seed << ": nothing saves " << any.saved;
      EXPECT_LE(series->figures(plan).cost.flops, any.cost.flops) << "seed " << seed;
    }
    EXPECT_EQ(series->figures(series->size() - 1).saved, most) << "seed " << seed;
  }
}

TEST(ModulePlans, ThePlanHasTheFiguresOfItsModules) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ModuleTree tree = TreeMaker(seed).make(40);
    const auto series = module_plans(tree);
    for (size_t plan = 0; plan < series->size(); ++plan) {
      std::vector<bool> chosen(tree.modules.size());
      for (const PlannedRegion& region : series->plan(plan)) chosen[size_t(region.first)] = true;
      EXPECT_TRUE(is_plan(tree, chosen)) << "seed " << seed;
      EXPECT_EQ(figures_of(tree, chosen).saved, series->figures(plan).saved) << "seed " << seed;
      EXPECT_EQ(figures_of(tree, chosen).cost, series->figures(plan).cost) << "seed " << seed;
    }
  }
}

// A block that saves 8 in all, of which its two parts save 3 each; four blocks.
ModuleTree four_blocks() {
  ModuleTree tree;
  tree.classes = {{.type = "Part", .saved = 3, .cost = {1, 0}, .parts = {}},
                  {.type = "Block", .saved = 8, .cost = {4, 0}, .parts = {{0, 2}}},
                  {.type = "Model", .saved = 0, .cost = {}, .parts = {{1, 4}}}};
  tree.modules.push_back({.path = "", .of = 2, .inside = {1, 4, 7, 10}});
  for (int32_t block = 0; block < 4; ++block) {
    const std::string path = std::to_string(block);
    tree.modules.push_back({.path = path, .of = 1, .inside = {3 * block + 2, 3 * block + 3}});
    for (const char* part : {".a", ".b"})
      tree.modules.push_back({.path = path + part, .of = 0, .inside = {}});
  }
  return tree;
}

TEST(ModulePlans, TheFirstOfThoseThatAreAlikeComeFirst) {
  const ModuleTree tree = four_blocks();
  const auto series = module_plans(tree);
  EXPECT_EQ(series->plan(0), RecomputePlan());
  EXPECT_EQ(series->plan(1), whole_modules({2}));  // "0.a"
  // All parts: 8 times 3 bytes for 8. One block in place of its two parts: 2 bytes more, for 2 more.
  EXPECT_EQ(series->figures(8).saved, 24);
  EXPECT_EQ(series->figures(8).cost.flops, 8);
  EXPECT_EQ(series->figures(9).saved, 26);
  EXPECT_EQ(series->plan(9), whole_modules({1, 5, 6, 8, 9, 11, 12}));
}

TEST(ModulePlans, AModuleThatSavesMoreThanTheLimitIsTakenApart) {
  const auto series = module_plans(four_blocks(), {.largest = 3});
  EXPECT_EQ(series->figures(series->size() - 1).saved, 24);
}

// 2^20 layers are 20 sums.
TEST(ModulePlans, TheWorkGrowsWithTheKindsOfModules) {
  ModuleTree tree;
  tree.classes = {{.type = "Layer", .saved = 5, .cost = {2, 0}, .parts = {}},
                  {.type = "Model", .saved = 0, .cost = {}, .parts = {{0, 1 << 20}}}};
  tree.modules.push_back({.path = "", .of = 1, .inside = {}});
  const auto series = module_plans(tree);
  EXPECT_EQ(series->figures(series->size() - 1).saved, 5 << 20);
}

}  // namespace
}  // namespace metaprof
