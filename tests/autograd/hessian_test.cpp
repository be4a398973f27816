// `grad` with respect to inputs computes no gradient of a weight: measured on a Hessian, with the engine's
// trimming on and off. The published speed-ups of this change are 1.90 without and 1.47 with a final backward
// pass.

#include <gtest/gtest.h>

#include "tests/autograd/hessian_network.h"

namespace metaprof {
namespace {

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// With L for one product in each layer, and D for the number of inputs:
//   forward                                                                         L
//   gradient: per layer the gradient of its input (and, untrimmed, of its weight)   L    (2 L)
//   a row of the Hessian, back through the gradient's graph and, with the zeros
//   that ReLU's second derivative is, through that of the forward                 2 L    (4 L)
//   backward from a row: input and weight of each layer that made the row         2 L    (2 L)
//   and once, with such zeros again, through the forward                          2 L    (2 L)
// Without the last two lines (3 + 4 D) / (2 + 2 D), which is 1.94 for 8 inputs; with them
// (5 + 6 D) / (4 + 4 D), 1.47.
TEST(Hessian, LeavingOutWeightGradientsHalvesTheWork) {
  const HessianNetwork network;
  const HessianCost trimmed = run_hessian(network, true, true);
  const HessianCost untrimmed = run_hessian(network, false, true);
  EXPECT_NEAR(ratio(untrimmed.flops, trimmed.flops), 1.94, 0.005);
  EXPECT_NEAR(ratio(untrimmed.flops + untrimmed.flops_backward, trimmed.flops + trimmed.flops_backward), 1.47,
              0.005);
  EXPECT_EQ(trimmed.flops_backward, untrimmed.flops_backward);
}

TEST(Hessian, TrimmedItTakesWhatItMust) {
  const HessianNetwork network;
  const int64_t layers = network.inputs * network.width + 5 * network.width * network.width + network.width;
  const int64_t product = 2 * network.batch * layers, last = 2 * network.batch * network.width;
  // A row has no use for the last layer: the gradient began there with ones, and no ReLU follows it.
  EXPECT_EQ(run_hessian(network, true, false).flops,
            product + product + network.inputs * (2 * product - 2 * last));
}

// Each product that is not computed keeps nothing for its own derivative. The most that is kept at one time
// is the same: such tensors were let go of as soon as their node had run.
TEST(Hessian, LessIsSaved) {
  const HessianNetwork network;
  const HessianCost trimmed = run_hessian(network, true, false);
  const HessianCost untrimmed = run_hessian(network, false, false);
  EXPECT_NEAR(ratio(untrimmed.saved_bytes, trimmed.saved_bytes), 1.91, 0.005);
  EXPECT_LE(trimmed.saved_most, untrimmed.saved_most);
}

}  // namespace
}  // namespace metaprof
