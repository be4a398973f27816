// Chains: the dynamic programme against all nested checkpoints that there are of short chains.

#include "estimate/plan/strategies/chain_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace metaprof {
namespace {

struct Ran {
  int64_t peak = 0;
  RecomputeCost cost;
};

// Runs stages `first` … `last` forward and backward with a plan, `live` bytes being kept already.
void run(const std::vector<PlannerStage>& stages, const RecomputePlan& plan, int32_t first, int32_t last,
         int64_t live, Ran& ran) {
  auto region = plan.begin();
  struct Done {
    const PlannedRegion* region;
    int64_t before;
  };
  std::vector<Done> done;
  for (int32_t stage = first; stage <= last;) {
    if (region != plan.end() && region->first == stage) {
      done.push_back({&*region, live});
      live += stages[size_t(stage)].bare;
      for (int32_t i = stage; i <= region->last; ++i) ran.cost += stages[size_t(i)].cost;
      stage = region++->last + 1;
    } else {
      live += stages[size_t(stage++)].kept;
    }
    ran.peak = std::max(ran.peak, live);
  }
  // Backward: of what a region kept only that is left which its stages keep themselves.
  for (; !done.empty(); done.pop_back()) {
    const auto& [one, before] = done.back();
    run(stages, one->inside, one->first, one->last, before, ran);
  }
}

Ran run(const std::vector<PlannerStage>& stages, const RecomputePlan& plan) {
  Ran ran;
  run(stages, plan, 0, static_cast<int32_t>(stages.size()) - 1, 0, ran);
  return ran;
}

// All plans of stages `first` … `last`; `around`: none is as long as this.
std::vector<RecomputePlan> all_plans(const std::vector<PlannerStage>& stages, int32_t first, int32_t last,
                                     int32_t around) {
  if (first > last) return {{}};
  std::vector<RecomputePlan> plans = all_plans(stages, first + 1, last, around);
  for (int32_t end = first; end <= last && end - first + 1 < around; ++end) {
    if (end > first && stages[size_t(first)].list != stages[size_t(end)].list) break;
    for (const RecomputePlan& inside : all_plans(stages, first, end, end - first + 1))
      for (const RecomputePlan& rest : all_plans(stages, end + 1, last, around)) {
        RecomputePlan& plan = plans.emplace_back();
        plan.push_back({.first = first, .last = end, .kept = {}, .inside = inside});
        plan.insert(plan.end(), rest.begin(), rest.end());
      }
  }
  return plans;
}

std::vector<PlannerStage> random_chain(std::mt19937& random, int count) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  std::vector<PlannerStage> stages;
  int list = 0;
  for (int i = 0; i < count; ++i) {
    if (pick(0, 3) == 0) ++list;
    const int bare = pick(0, 3);
    stages.push_back(
        {.module = i, .list = list, .kept = bare + pick(1, 9), .bare = bare, .cost = {pick(1, 9), 0}});
  }
  return stages;
}

TEST(ChainPlans, EveryPlanIsTheCheapestWithItsPeak) {
  std::mt19937 random(7);
  for (int chain = 0; chain < 60; ++chain) {
    const std::vector<PlannerStage> stages = random_chain(random, 2 + chain % 4);
    const auto count = static_cast<int32_t>(stages.size());
    const auto series = chain_plans(stages, 64);  // at most 60 bytes: a slot is a byte
    std::vector<Ran> planned;
    for (size_t plan = 0; plan < series->size(); ++plan) {
      planned.push_back(run(stages, series->plan(plan)));
      EXPECT_EQ(planned.back().cost, series->figures(plan).cost) << "chain " << chain;
    }
    for (const RecomputePlan& any : all_plans(stages, 0, count - 1, count + 1)) {
      const Ran ran = run(stages, any);
      EXPECT_TRUE(std::ranges::any_of(
          planned, [&](const Ran& one) { return one.peak <= ran.peak && one.cost <= ran.cost; }))
          << "chain " << chain << ": nothing as good as " << ran.peak << " bytes for " << ran.cost.flops;
    }
  }
}

TEST(ChainPlans, StagesOfDifferentListsAreNotJoined) {
  std::mt19937 random(11);
  for (int chain = 0; chain < 100; ++chain) {
    const std::vector<PlannerStage> stages = random_chain(random, 12);
    const auto series = chain_plans(stages);
    for (size_t plan = 0; plan < series->size(); ++plan)
      for (const PlannedRegion& region : series->plan(plan))
        EXPECT_EQ(stages[size_t(region.first)].list, stages[size_t(region.last)].list);
  }
}

// 16 stages of 10 bytes, of which 1 is the input: with little memory 4 checkpoints of 4 are not the best, nested
// ones are.
TEST(ChainPlans, NestWhereThatSavesMore) {
  std::vector<PlannerStage> stages;
  for (int32_t i = 0; i < 16; ++i)
    stages.push_back({.module = i, .list = 0, .kept = 10, .bare = 1, .cost = {1, 0}});
  const auto series = chain_plans(stages, 160);
  const RecomputePlan least = series->plan(series->size() - 1);
  EXPECT_TRUE(std::ranges::any_of(least, [](const PlannedRegion& region) { return !region.inside.empty(); }));
  EXPECT_LT(run(stages, least).peak, 4 + 4 * 10);
}

TEST(SquareRootPlans, AreEqualStretchesOfEachList) {
  std::vector<PlannerStage> stages;
  for (int32_t i = 0; i < 9; ++i)
    stages.push_back({.module = i, .list = 0, .kept = 10, .bare = 1, .cost = {1, 0}});
  stages.push_back({.module = 9, .list = 1, .kept = 10, .bare = 1, .cost = {1, 0}});
  const auto series = square_root_plans(stages);
  ASSERT_EQ(series->size(), 2u);
  EXPECT_EQ(series->plan(0), RecomputePlan());
  EXPECT_EQ(series->plan(1), (RecomputePlan{{.first = 0, .last = 2},
                                            {.first = 3, .last = 5},
                                            {.first = 6, .last = 8},
                                            {.first = 9, .last = 9}}));
  EXPECT_EQ(series->figures(1).saved, 100 - 4);
  EXPECT_EQ(series->figures(1).cost.flops, 10);
}

TEST(SquareRootPlans, NoListNoPlan) { EXPECT_EQ(square_root_plans({})->size(), 1u); }

// Lists of 3 and 2: as one each, in pairs, each stage by itself; the dynamic programme is no part of it.
TEST(EqualStretches, HaveEachLengthOnce) {
  std::vector<PlannerStage> stages;
  for (int32_t i = 0; i < 5; ++i)
    stages.push_back({.module = i, .list = i < 3 ? 0 : 1, .kept = 10, .bare = 2, .cost = {7, 0}});
  const auto series = equal_stretch_plans(stages);
  const auto ends = [&](size_t plan) {
    std::vector<std::pair<int32_t, int32_t>> ends;
    for (const PlannedRegion& region : series->plan(plan)) ends.emplace_back(region.first, region.last);
    return ends;
  };
  using Ends = std::vector<std::pair<int32_t, int32_t>>;
  ASSERT_EQ(series->size(), 4u);
  EXPECT_EQ(ends(0), Ends());
  EXPECT_EQ(ends(1), (Ends{{0, 2}, {3, 4}}));
  EXPECT_EQ(ends(2), (Ends{{0, 1}, {2, 2}, {3, 4}}));
  EXPECT_EQ(ends(3), (Ends{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}));
  // Of each stretch its first stage's input stays: 5 · 10 − 2 · 2, − 3 · 2, − 5 · 2. All is computed again once.
  EXPECT_EQ(series->figures(1).saved, 46);
  EXPECT_EQ(series->figures(2).saved, 44);
  EXPECT_EQ(series->figures(3).saved, 40);
  for (size_t plan = 1; plan < 4; ++plan) EXPECT_EQ(series->figures(plan).cost.flops, 35);
}

}  // namespace
}  // namespace metaprof
