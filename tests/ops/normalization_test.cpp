// Normalisations: which library takes a call, what it keeps, and the scratch memory of the framework's
// kernels.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/platform/platform.h"
#include "meta/trace/text.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class Normalisations : public ImageOps {
 protected:
  bool called(std::string_view name) const {
    for (const CallRecord& call : session_->trace.calls)
      if (session_->trace.text(call.op) == name) return true;
    return false;
  }
  Tensor batch_norm(const Tensor& x, DType parameters, bool train, double epsilon = 1e-5,
                    bool enabled = true) {
    const Sizes channels{x.size(1)};
    const Tensor weight = tensor(channels, parameters), bias = tensor(channels, parameters);
    const Tensor mean = tensor(channels, parameters), variance = tensor(channels, parameters);
    watch();
    return call<"batch_norm">(*session_, x, weight, bias, mean, variance, train, 0.1, epsilon, enabled);
  }
};

TEST_F(Normalisations, CudnnTakesFp32ImagesInTraining) {
  batch_norm(tensor(Sizes{2, 4, 5, 5}), DType::f32, true);
  EXPECT_TRUE(called("aten::cudnn_batch_norm"));
  EXPECT_EQ(allocated(), (Blocks{2 * 4 * 25 * 4, 16, 16}));  // output, mean, inverse deviation
}

TEST_F(Normalisations, CudnnKeepsNoStatisticsInEvalMode) {
  batch_norm(tensor(Sizes{2, 4, 5, 5}), DType::f32, false);
  EXPECT_TRUE(called("aten::cudnn_batch_norm"));
  EXPECT_EQ(allocated(), Blocks{2 * 4 * 25 * 4});
}

TEST_F(Normalisations, TheFrameworkTakesWhatCudnnDoesNot) {
  struct Case {
    const char* why;
    DType input, parameters;
    Sizes sizes;
    double epsilon;
    bool enabled;
  };
  for (const Case& one :
       {Case{"bf16", DType::bf16, DType::bf16, {2, 4, 5, 5}, 1e-5, true},
        Case{"fp16 parameters", DType::f16, DType::f16, {2, 4, 5, 5}, 1e-5, true},
        Case{"two dimensions", DType::f32, DType::f32, {2, 4}, 1e-5, true},
        Case{"epsilon below cuDNN's least", DType::f32, DType::f32, {2, 4, 5, 5}, 1e-6, true},
        Case{"switched off", DType::f32, DType::f32, {2, 4, 5, 5}, 1e-5, false}}) {
    session_ = make_session(platform_named("h200"));
    batch_norm(tensor(one.sizes, one.input), one.parameters, true, one.epsilon, one.enabled);
    EXPECT_TRUE(called("aten::native_batch_norm")) << one.why;
  }
  session_ = make_session(platform_named("h200"));
  batch_norm(tensor(Sizes{2, 4, 5, 5}, DType::f16), DType::f32, true);
  EXPECT_TRUE(called("aten::cudnn_batch_norm")) << "fp16 with fp32 parameters";
}

TEST_F(Normalisations, ChannelsLastStatisticsAreStaged) {
  batch_norm(channels_last(Sizes{16, 64, 56, 56}, DType::bf16), DType::bf16, true);
  // 50176 values per channel: blocks of 32 × 16, 16 values each: min(ceil(50176 / 256), 128) = 128 rows of
  // blocks, ceil(64 / 32) = 2 columns. Staging 4·64·128 floats, one semaphore per column.
  EXPECT_EQ(allocated(), (Blocks{16 * 64 * 56 * 56 * 2, 256, 256, 4 * 64 * 128 * 4, 2 * 4}));
}

TEST_F(Normalisations, ManyRowsMakePartialSumsInLayerNorm) {
  const Tensor x = with_gradient(tensor(Sizes{65537, 64}));
  const Tensor weight = with_gradient(tensor(Sizes{64})), bias = with_gradient(tensor(Sizes{64}));
  const Tensor out = call<"layer_norm">(*session_, x, Sizes{64}, weight, bias);
  const Tensor grad = tensor(out.sizes());
  const Tensor roots[] = {out}, grads[] = {grad};
  watch();
  backward(*session_, roots, grads);
  const std::vector<int64_t> blocks = allocated();
  // dX, dW, dB, then min(32768 / 2, ceil(65537 / 32)) = 2049 rows of partial sums, twice.
  ASSERT_GE(blocks.size(), 5u);
  EXPECT_EQ(Blocks(blocks.begin(), blocks.begin() + 5),
            (Blocks{65537 * 64 * 4, 256, 256, 2049 * 64 * 4, 2049 * 64 * 4}));
}

TEST_F(Normalisations, RmsNormIsOneKernelIfTheWeightHasTheInputsDtype) {
  {
    const Tensor x = tensor(Sizes{4, 8}, DType::bf16);
    call<"rms_norm">(*session_, x, Sizes{8}, tensor(Sizes{8}, DType::bf16), 1e-6);
    EXPECT_TRUE(called("aten::_fused_rms_norm"));
  }
  session_ = make_session(platform_named("h200"));
  const Tensor y = tensor(Sizes{4, 8}, DType::bf16);
  call<"rms_norm">(*session_, y, Sizes{8}, tensor(Sizes{8}, DType::f32), 1e-6);
  EXPECT_FALSE(called("aten::_fused_rms_norm"));
  EXPECT_TRUE(called("aten::rsqrt"));
}

TEST_F(Normalisations, GroupNormCopiesChannelsLastInputBeforeItSavesIt) {
  const Tensor x = with_gradient(channels_last(Sizes{2, 4, 3, 3}));
  watch();
  call<"group_norm">(*session_, x, 2, tensor(Sizes{4}), tensor(Sizes{4}));
  // parameters 16 + 16; the copy, the output, mean and deviation [2,2], scale and shift [2,4]
  EXPECT_EQ(allocated(), (Blocks{16, 16, 288, 288, 16, 16, 32, 32}));
}

TEST_F(Normalisations, MistakesAreNamed) {
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      message([&] {
        call<"layer_norm">(*session_, tensor(Sizes{2, 3}), Sizes{4});
      }),
      "aten::native_layer_norm: normalized_shape [4] should be the last sizes of the input; got f32[2,3]");
  EXPECT_EQ(message([&] {
              call<"group_norm">(*session_, tensor(Sizes{2, 6, 3}), 4);
            }),
            "aten::group_norm: the channels of f32[2,6,3] do not divide into 4 groups");
  EXPECT_EQ(message([&] {
              call<"batch_norm">(*session_, tensor(Sizes{2, 3, 4}), tensor(Sizes{4}), Tensor(), Tensor(),
                                 Tensor(), true, 0.1, 1e-5, true);
            }),
            "aten::batch_norm: 'weight' should have 3 elements, one per channel of f32[2,3,4]; got f32[4]");
  EXPECT_EQ(
      message([&] {
        call<"instance_norm">(*session_, tensor(Sizes{2, 3, 4}), Tensor(), Tensor(), Tensor(), Tensor(),
                              false, 0.1, 1e-5, true);
      }),
      "aten::instance_norm: needs running_mean and running_var when it does not use the input's statistics");
}

}  // namespace
}  // namespace metaprof
