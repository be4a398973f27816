#include "meta/ops/convolution/convolution.h"

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/platform/planned_workspaces.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class Convolutions : public ImageOps {
 protected:
  void run_backward(const Tensor& out) {
    const Tensor grad = session_->empty_strided(out.sizes(), out.strides(), out.dtype(), out.device());
    const Tensor roots[] = {out}, grads[] = {grad};
    watch();
    backward(*session_, roots, grads);
  }
  std::string message(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(Convolutions, AsksForTheOutputOnly) {
  const Tensor x = tensor(Sizes{2, 3, 8, 8}), w = tensor(Sizes{4, 3, 3, 3}), b = tensor(Sizes{4});
  watch();
  const Tensor out = call<"conv2d">(*session_, x, w, b, 2, 1);
  EXPECT_EQ(out.sizes(), (Sizes{2, 4, 4, 4}));  // (8 + 2·1 − 3) / 2 + 1 = 4
  EXPECT_EQ(allocated(), Blocks{2 * 4 * 4 * 4 * 4});
}

TEST_F(Convolutions, BackwardMakesInputThenWeightThenBias) {
  const Tensor x = with_gradient(tensor(Sizes{2, 3, 8, 8})), w = with_gradient(tensor(Sizes{4, 3, 3, 3}));
  const Tensor b = with_gradient(tensor(Sizes{4}));
  run_backward(call<"conv2d">(*session_, x, w, b, 2, 1));
  EXPECT_EQ(allocated(), (Blocks{2 * 3 * 8 * 8 * 4, 4 * 3 * 3 * 3 * 4, 4 * 4}));
}

TEST_F(Convolutions, NativeDepthwiseMakesTheWeightsGradientFirst) {
  const Tensor x = with_gradient(tensor(Sizes{2, 8, 6, 6})), w = with_gradient(tensor(Sizes{8, 1, 3, 3}));
  run_backward(call<"conv2d">(*session_, x, w, Tensor(), 1, 1, 1, 8));
  EXPECT_EQ(allocated(), (Blocks{8 * 9 * 4, 2 * 8 * 6 * 6 * 4}));
}

TEST_F(Convolutions, ChannelsLastInputMakesACopyOfTheWeight) {
  const Tensor x = channels_last(Sizes{2, 8, 6, 6}), w = tensor(Sizes{4, 8, 3, 3});
  watch();
  const Tensor out = call<"conv2d">(*session_, x, w);
  EXPECT_TRUE(is_channels_last(out.sizes(), out.strides()));
  EXPECT_EQ(allocated(), (Blocks{2 * 4 * 4 * 4 * 4, 4 * 8 * 3 * 3 * 4}));  // output 4×4, then the copy
}

TEST_F(Convolutions, ChannelsLastWeightMakesACopyOfTheInputFirst) {
  const Tensor x = tensor(Sizes{2, 8, 6, 6}), w = channels_last(Sizes{4, 8, 3, 3});
  watch();
  call<"conv2d">(*session_, x, w);
  EXPECT_EQ(allocated(), (Blocks{2 * 8 * 6 * 6 * 4, 2 * 4 * 4 * 4 * 4}));
}

TEST_F(Convolutions, EvenKernelWithPaddingSamePadsTheInput) {
  const Tensor x = tensor(Sizes{1, 2, 6, 6}), w = tensor(Sizes{3, 2, 4, 3});
  watch();
  const Tensor out = call<"conv2d.padding">(*session_, x, w, Tensor(), 1, "same");
  EXPECT_EQ(out.sizes(), (Sizes{1, 3, 6, 6}));
  // Height: 3 rows of padding are needed, 1 on both sides and 1 more below: 2·7·6 elements of input.
  EXPECT_EQ(allocated(), (Blocks{2 * 7 * 6 * 4, 3 * 6 * 6 * 4}));
}

TEST_F(Convolutions, HalfPrecisionDepthwiseGoesToCudnnWhereThatIsFast) {
  const Tensor x = tensor(Sizes{2, 32, 14, 14}, DType::f16), w = tensor(Sizes{32, 1, 3, 3}, DType::f16);
  Convolution v;
  v.input = x;
  v.weight = w;
  v.groups = 32;
  v.stride = v.dilation = Sizes{1, 1};
  v.padding = v.output_padding = Sizes{0, 0};
  Call probe{.session = *session_,
             .op = *standard_registry().find("aten::convolution"),
             .arguments = {},
             .results = {}};
  EXPECT_EQ(convolution_backend(probe, v), ConvolutionBackend::cudnn);
  v.dilation = Sizes{2, 2};
  EXPECT_EQ(convolution_backend(probe, v), ConvolutionBackend::depthwise_2d);
  v.dilation = Sizes{1, 1};
  v.stride = Sizes{2, 2};  // 32 channels are too few for stride 2
  EXPECT_EQ(convolution_backend(probe, v), ConvolutionBackend::depthwise_2d);
  v.input = tensor(Sizes{2, 32, 14, 14}, DType::bf16);
  v.stride = Sizes{1, 1};
  EXPECT_EQ(convolution_backend(probe, v), ConvolutionBackend::depthwise_2d);
}

TEST_F(Convolutions, FlopsAreThoseOfTheFrameworksCounter) {
  const Tensor x = with_gradient(tensor(Sizes{2, 4, 8, 8})), w = with_gradient(tensor(Sizes{6, 2, 3, 3}));
  const Tensor out = call<"conv2d">(*session_, x, w, Tensor(), 1, 1, 1, 2);
  // 2 · batch 2 · 6·2 weights · 9 taps · 64 positions
  EXPECT_EQ(counted("aten::convolution"), 2 * 2 * 12 * 9 * 64);
  run_backward(out);
  // Input: as the forward. Weight: conv(x with channels and batch swapped [4,2,8,8], gradient [6,2,8,8]) to
  // [2,6,3,3]: 2 · 4 · 6·2 · 64 taps · 9 positions: twice too much, as the framework counts groups.
  EXPECT_EQ(counted("aten::convolution_backward"), 2 * 2 * 12 * 9 * 64 + 2 * 4 * 12 * 64 * 9);
}

TEST_F(Convolutions, TransposedFlopsGoByTheInputsPositions) {
  const Tensor x = tensor(Sizes{2, 4, 5, 5}), w = tensor(Sizes{4, 3, 2, 2});
  const Tensor out = call<"conv_transpose2d.input">(*session_, x, w, Tensor(), 2);
  EXPECT_EQ(out.sizes(), (Sizes{2, 3, 10, 10}));  // (5 − 1)·2 + 2
  EXPECT_EQ(counted("aten::convolution"), 2 * 2 * 4 * 3 * 4 * 25);
}

// Answers by operation, and remembers what it was asked.
class Planner final : public WorkspacePlanner {
 public:
  explicit Planner(std::vector<std::string>& asked) : asked_(asked) {}
  std::optional<int64_t> convolution(const ConvolutionPlan& plan, const Platform&) override {
    asked_.push_back(std::string(1, "fdw"[static_cast<int>(plan.op)]) + to_string(plan.x) +
                     to_string(plan.w));
    return 1000 * (1 + static_cast<int64_t>(plan.op));
  }
  std::optional<int64_t> attention(const AttentionPlan&, const Platform&) override { return {}; }

 private:
  std::vector<std::string>& asked_;
};

TEST_F(Convolutions, WorkspacesFollowTheResultsThatTheyAreFor) {
  std::vector<std::string> asked;
  PlannedWorkspaces workspaces;
  workspaces.add(WorkspaceSource::table, std::make_unique<Planner>(asked));
  session_->planned_workspaces = &workspaces;
  const Tensor x = with_gradient(tensor(Sizes{2, 3, 16})), w = with_gradient(tensor(Sizes{4, 3, 5}));
  watch();
  const Tensor out = call<"conv1d">(*session_, x, w);
  EXPECT_EQ(allocated(), (Blocks{2 * 4 * 12 * 4, 1000}));
  run_backward(out);
  EXPECT_EQ(allocated(), (Blocks{2 * 3 * 16 * 4, 2000, 4 * 3 * 5 * 4, 3000}));
  // One dimension is planned as two.
  EXPECT_EQ(asked, (std::vector<std::string>{"f[2,3,1,16][4,3,1,5]", "d[2,3,1,16][4,3,1,5]",
                                             "w[2,3,1,16][4,3,1,5]"}));
  EXPECT_EQ(workspaces.answers(WorkspaceSource::table).count, 3);
  EXPECT_EQ(workspaces.answers(WorkspaceSource::table).bytes, 6000);  // 1000 + 2000 + 3000
}

TEST_F(Convolutions, MistakesAreNamed) {
  const Tensor x = tensor(Sizes{2, 3, 8, 8});
  EXPECT_EQ(
      message([&] {
        call<"conv2d">(*session_, x, tensor(Sizes{4, 5, 3, 3}));
      }),
      "aten::convolution: the input has 3 channels, the weight wants 5 in 1 groups; got f32[2,3,8,8] and "
      "f32[4,5,3,3]");
  EXPECT_EQ(message([&] {
              call<"conv2d">(*session_, x, tensor(Sizes{4, 3, 9, 9}));
            }),
            "aten::convolution: the kernel spans 9 but the padded input has only 8 in dimension 2; got "
            "f32[2,3,8,8] and f32[4,3,9,9]");
  EXPECT_EQ(message([&] {
              call<"conv2d">(*session_, tensor(Sizes{8, 8}), tensor(Sizes{4, 3, 3, 3}));
            }),
            "aten::conv2d: expects an input of 3 or 4 dimensions, got f32[8,8]");
  EXPECT_EQ(message([&] {
              call<"conv2d.padding">(*session_, x, tensor(Sizes{4, 3, 3, 3}), Tensor(), 2, "same");
            }),
            "aten::_convolution_mode: padding 'same' needs a stride of 1, got 2");
  EXPECT_EQ(message([&] {
              call<"conv2d.padding">(*session_, x, tensor(Sizes{4, 3, 3, 3}), Tensor(), 1, "full");
            }),
            "aten::_convolution_mode: padding must be a number, 'same' or 'valid'; got 'full'");
  EXPECT_EQ(message([&] {
              call<"conv2d">(*session_, x, tensor(Sizes{4, 3, 3, 3}), Tensor(), 0);
            }),
            "aten::convolution: stride and dilation must be positive, paddings not negative");
  EXPECT_EQ(message([&] {
              call<"conv2d">(*session_, x, tensor(Sizes{4, 3, 3, 3}), Tensor(), 1, 0, 1, 0);
            }),
            "aten::convolution: groups must be positive, got 0");
}

}  // namespace
}  // namespace metaprof
