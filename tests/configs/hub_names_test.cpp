// Names of the Hub stand for models that are built in.

#include "program/builtin/hub_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "program/builtin/builtin.h"

namespace metaprof {
namespace {

TEST(HubNames, AreSortedAndStandForBuiltInModels) {
  EXPECT_TRUE(std::ranges::is_sorted(kHubNames, {}, &HubName::hub));
  for (const HubName& known : kHubNames) {
    EXPECT_TRUE(builtin_model(known.name)) << known.name;
    EXPECT_FALSE(builtin_model(known.hub)) << known.hub;  // a name of its own
    EXPECT_EQ(builtin_named("Owner/" + std::string(known.hub)), known.name);
  }
}

TEST(HubNames, OwnersAndCaseDoNotMatter) {
  EXPECT_EQ(builtin_named("Qwen/Qwen2.5-7B-Instruct"), "qwen2-7b");
  EXPECT_EQ(builtin_named("GPT2"), "gpt2");
  EXPECT_EQ(builtin_named("nobody/nothing"), "");
}

}  // namespace
}  // namespace metaprof
