// Fake quantization, windows of signals and samples of distributions on a GPU: blocks as PyTorch 2.11 asks for them on an
// emulated H200.

#include "meta/autograd/engine/engine.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

// 16 channels of 32 elements: 2048 bytes, 512 of a mask.
class RoundingAndWindows : public ImageOps {
 protected:
  static constexpr int64_t kMask = 512, kBytes = 4 * kMask;

  Blocks blocks_of_backward(const Tensor& result) {
    const Tensor gradient = tensor(result.sizes());
    watch();
    backward(*session_, std::vector{result}, std::vector{gradient});
    return allocated();
  }

  Tensor self_ = with_gradient(tensor(Sizes{16, 32}));
};

// Least and greatest zero point are read; the gradient is that of what the mask lets through.
TEST_F(RoundingAndWindows, ChannelsAreRoundedWithAMask) {
  const Tensor scale = tensor(Sizes{16}), zero_point = tensor(Sizes{16}, DType::i32);
  watch();
  const Tensor rounded =
      call<"fake_quantize_per_channel_affine">(*session_, self_, scale, zero_point, 0, -128, 127);
  EXPECT_EQ(allocated(), (Blocks{4, 4, kBytes, kMask}));
  EXPECT_EQ(blocks_of_backward(rounded), (Blocks{kBytes}));
}

// One flag of 64 bits on the device says that rounding is on.
TEST_F(RoundingAndWindows, ScaleMayBeATensor) {
  watch();
  call<"fake_quantize_per_tensor_affine.tensor_qparams">(*session_, self_, tensor(Sizes{1}),
                                                         tensor(Sizes{1}, DType::i32), 0, 255);
  EXPECT_EQ(allocated(), (Blocks{4, 4, 8, kBytes, kMask}));  // the first two: scale and zero point
}

// Gradients of every element for self, scale and zero point; the last two are added up, 16 sums of 4 bytes each.
TEST_F(RoundingAndWindows, ScalesAreLearned) {
  const Tensor scale = with_gradient(tensor(Sizes{16})), zero_point = with_gradient(tensor(Sizes{16}));
  watch();
  const Tensor rounded = call<"_fake_quantize_learnable_per_channel_affine">(*session_, self_, scale,
                                                                             zero_point, 0, 0, 255, 0.5);
  EXPECT_EQ(allocated(), (Blocks{64, 64, 4, 4, kBytes, kMask}));
  EXPECT_EQ(blocks_of_backward(rounded), (Blocks{64, 4, 4, kBytes, kBytes, kBytes, 64, 64}));
}

// Buffers that are empty get 16 elements each, then both bounds are taken of the rows.
TEST_F(RoundingAndWindows, AnObserverGetsAnElementForEachChannel) {
  const Tensor on = tensor(Sizes{1}, DType::i64), lowest = tensor(Sizes{0}), highest = tensor(Sizes{0}),
               scale = tensor(Sizes{0}), zero_point = tensor(Sizes{0}, DType::i32);
  watch();
  call<"fused_moving_avg_obs_fake_quant">(*session_, self_, on, on, lowest, highest, scale, zero_point, 0.01,
                                          0, 255, 0, true, true);
  EXPECT_EQ(allocated(), (Blocks{64, 64, 64, 64, 64, 64, kMask, kBytes}));
}

// A periodic window of 10 elements is made with 11.
TEST_F(RoundingAndWindows, AreMadeAnElementLonger) {
  watch();
  EXPECT_EQ(call<"hann_window">(*session_, 10).sizes(), (Sizes{10}));
  EXPECT_EQ(allocated(), (Blocks{44}));
  watch();
  call<"blackman_window.periodic">(*session_, 10, false);
  EXPECT_EQ(allocated(), (Blocks{40, 40, 40, 40, 40}));
  watch();
  call<"kaiser_window">(*session_, 10);
  EXPECT_EQ(allocated(), (Blocks{44, 44}));
}

// The last dimension's sum is taken: 16 of 4 bytes.
TEST_F(RoundingAndWindows, SamplesOfADirichletDistributionAreDividedByTheirSum) {
  watch();
  call<"_sample_dirichlet">(*session_, tensor(Sizes{16, 32}));
  EXPECT_EQ(allocated(), (Blocks{kBytes, kBytes, 64}));  // the first: concentrations
}

}  // namespace
}  // namespace metaprof
