#ifdef METAPROF_CUDA

#include <gtest/gtest.h>

#include "backends/cuda/convolutions.h"

namespace metaprof::cuda {
namespace {

using Integers = std::vector<int64_t>;

struct Geometry {
  Integers x, w, y, stride, padding;
};

// Layers of networks; stride and padding as the layers have them.
TEST(ConvolutionBetween, FindsTheGeometryOfUsualLayers) {
  const Geometry layers[] = {
      {{8, 3, 224, 224}, {64, 3, 7, 7}, {8, 64, 112, 112}, {2, 2}, {3, 3}},      // the first of a ResNet
      {{8, 64, 56, 56}, {64, 64, 3, 3}, {8, 64, 56, 56}, {1, 1}, {1, 1}},        // within a stage
      {{8, 128, 56, 56}, {128, 128, 3, 3}, {8, 128, 28, 28}, {2, 2}, {1, 1}},    // between stages
      {{8, 256, 56, 56}, {512, 256, 1, 1}, {8, 512, 28, 28}, {2, 2}, {0, 0}},    // its shortcut
      {{8, 3, 224, 224}, {768, 3, 16, 16}, {8, 768, 14, 14}, {16, 16}, {0, 0}},  // patches
      {{8, 96, 14, 14}, {96, 1, 7, 7}, {8, 96, 14, 14}, {1, 1}, {3, 3}},         // one channel at a time
      {{2, 16, 8, 20, 20}, {32, 16, 3, 3, 3}, {2, 32, 8, 20, 20}, {1, 1, 1}, {1, 1, 1}},
      {{4, 80, 3000}, {384, 80, 3}, {4, 384, 3000}, {1, 1}, {0, 1}},  // of one dimension
  };
  for (const Geometry& layer : layers) {
    const auto question = convolution_between(layer.x, layer.w, layer.y, DType::bf16);
    ASSERT_TRUE(question) << layer.y[1];
    EXPECT_EQ(question->stride, layer.stride) << layer.y[1];
    EXPECT_EQ(question->padding, layer.padding) << layer.y[1];
  }
}

TEST(ConvolutionBetween, IsNothingWhereNoSuchConvolutionIs) {
  EXPECT_FALSE(convolution_between(Integers{8, 64, 7, 7}, Integers{64, 32, 2, 2}, Integers{8, 32, 14, 14},
                                   DType::f32));  // transposed
  EXPECT_FALSE(convolution_between(Integers{8, 64}, Integers{32, 64}, Integers{8, 32}, DType::f32));
  EXPECT_FALSE(
      convolution_between(Integers{0, 3, 8, 8}, Integers{4, 3, 3, 3}, Integers{0, 4, 8, 8}, DType::f32));
}

}  // namespace
}  // namespace metaprof::cuda

#endif
