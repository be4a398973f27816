#include "estimate/plan/strategies/plan_text.h"

#include <gtest/gtest.h>

#include "estimate/plan/strategies/module_plans.h"

namespace metaprof {
namespace {

// h.0 … h.3, each with two mm and a softmax.
ModuleTree four_blocks() {
  ModuleTree tree;
  tree.classes = {{.type = "Block",
                   .saved = 10,
                   .cost = {7, 0},
                   .calls = {{.op = "mm", .number = 0, .bytes = 4, .cost = {5, 0}},
                             {.op = "_softmax", .number = 0, .bytes = 4, .cost = {5, 0}},
                             {.op = "mm", .number = 2, .bytes = 4, .cost = {5, 0}}},
                   .parts = {}},
                  {.type = "Model", .saved = 0, .cost = {}, .calls = {}, .parts = {{0, 4}}}};
  tree.modules.push_back({.path = "", .of = 1, .inside = {1, 2, 3, 4}});
  for (int32_t block = 0; block < 4; ++block)
    tree.modules.push_back({.path = "h." + std::to_string(block), .of = 0, .inside = {}, .list = 0});
  return tree;
}

using Words = std::vector<std::string>;

TEST(PlanText, ModulesThatAreAlikeAreWrittenTogether) {
  const ModuleTree tree = four_blocks();
  EXPECT_EQ(plan_words(tree, {}), Words());
  EXPECT_EQ(plan_words(tree, whole_modules({1, 2, 3, 4})), Words{"h.*"});
  EXPECT_EQ(plan_words(tree, whole_modules({1, 2})), Words{"h.[0-1]"});
}

TEST(PlanText, BracesSayWhatIsKept) {
  EXPECT_EQ(plan_words(four_blocks(), {{.first = 1, .last = 1, .kept = {0, 1, 2}},
                                       {.first = 2, .last = 2},
                                       {.first = 3, .last = 3, .kept = {0, 1, 2}}}),
            (Words{"h.0{=_softmax:0 =mm:0,2}", "h.2{=_softmax:0 =mm:0,2}", "h.1"}));
}

TEST(PlanText, BracesHoldWhatIsInside) {
  EXPECT_EQ(
      plan_words(four_blocks(), {{.first = 1, .last = 3, .kept = {}, .inside = {{.first = 1, .last = 2}}}}),
      Words{"h.0..h.2{h.0..h.1}"});
}

}  // namespace
}  // namespace metaprof
