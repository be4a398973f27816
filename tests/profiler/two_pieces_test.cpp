#include "profiler/two_pieces.h"

#include <gtest/gtest.h>

namespace metaprof {
namespace {

// Points on two lines that meet at 0.5: slopes 0.2 and 1.8.
TEST(TwoPieces, FindsTheBend) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i <= 10; ++i) {
    const double x = i / 10.0;
    points.emplace_back(x, x <= 0.5 ? 0.2 * x : 0.1 + 1.8 * (x - 0.5));
  }
  const TwoPieces pieces = fit_two_pieces(points);
  ASSERT_EQ(pieces.slopes.size(), 2u);
  EXPECT_NEAR(pieces.slopes[0], 0.2, 1e-9);
  EXPECT_NEAR(pieces.slopes[1], 1.8, 1e-9);
  EXPECT_NEAR(pieces.intercepts[0], 0, 1e-9);
  EXPECT_NEAR(pieces.intercepts[1], -0.8, 1e-9);
  EXPECT_NEAR(pieces.breakpoints[1], 0.5, 1e-9);
}

TEST(TwoPieces, AStraightLineHasOnePieceAndAPointNone) {
  EXPECT_EQ(fit_two_pieces({{0, 0}, {0.5, 0.5}, {1, 1}}).breakpoints, (std::vector<double>{0, 1}));
  EXPECT_TRUE(fit_two_pieces({{0, 0}}).slopes.empty());
  EXPECT_TRUE(fit_two_pieces({}).slopes.empty());
}

}  // namespace
}  // namespace metaprof
