#include "estimate/plan/strategies/path_patterns.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

using Paths = std::vector<std::string>;

Paths layers(int first, int last, const std::string& after = "") {
  Paths paths;
  for (int i = first; i <= last; ++i) paths.push_back("model.layers." + std::to_string(i) + after);
  return paths;
}

TEST(PathPatterns, AllOfANumberedFamilyAreAStar) {
  EXPECT_EQ(path_patterns(layers(0, 15), layers(0, 15)), Paths{"model.layers.*"});
  EXPECT_EQ(path_patterns(layers(0, 15, ".mlp"), layers(0, 15, ".mlp")), Paths{"model.layers.*.mlp"});
}

TEST(PathPatterns, SomeOfThemAreRangesOfTheLastDigit) {
  EXPECT_EQ(path_patterns(layers(0, 7), layers(0, 15)), Paths{"model.layers.[0-7]"});
  EXPECT_EQ(path_patterns(layers(0, 12), layers(0, 15)),
            (Paths{"model.layers.[0-9]", "model.layers.1[0-2]"}));
  EXPECT_EQ(path_patterns(layers(3, 3), layers(0, 15)), Paths{"model.layers.3"});
  EXPECT_EQ(path_patterns({"h.1", "h.3", "h.4"}, {"h.0", "h.1", "h.2", "h.3", "h.4"}),
            (Paths{"h.1", "h.[3-4]"}));
}

TEST(PathPatterns, AStarThatWouldMatchAnotherModuleIsNotUsed) {
  EXPECT_EQ(path_patterns({"a.0", "a.1"}, {"a.0", "a.1", "a.last"}), Paths{"a.[0-1]"});
}

TEST(PathPatterns, WithoutNumbersAPathIsItsOwnPattern) {
  EXPECT_EQ(path_patterns({"encoder", "layer1.0"}, {"encoder", "decoder", "layer1.0"}),
            (Paths{"encoder", "layer1.0"}));
  EXPECT_EQ(path_patterns({"a[0]"}, {"a[0]"}), Paths{"a\\[0]"});
}

}  // namespace
}  // namespace metaprof
