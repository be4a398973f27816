// Autocast: casts by the rule of each operator, and the weights whose casts are kept.

#include "meta/autograd/modes/autocast.h"

#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class Autocasts : public Graph {
 protected:
  int64_t casts_since(size_t begin) const {
    int64_t casts = 0;
    for (size_t i = begin; i < session_->trace.events.size(); ++i) {
      const Event& event = session_->trace.events[i];
      if (event.kind != Event::Kind::call) continue;
      casts += session_->trace.text(session_->trace.calls[event.id].op) == "aten::_to_copy";
    }
    return casts;
  }
};

TEST_F(Autocasts, FollowTheRuleOfEachOperator) {
  const Tensor a = tensor({8, 8}), b = tensor({8, 8}, DType::bf16);
  EXPECT_EQ(describe(mm(a, a)), "f32[8,8]");
  const AutocastRegion region(*session_, true, DType::bf16);
  EXPECT_EQ(describe(mm(a, a)), "bf16[8,8]");                                      // lower precision
  EXPECT_EQ(describe(exp(b)), "f32[8,8]");                                         // fp32
  EXPECT_EQ(describe(call<"exp_">(*session_, clone(b))), "bf16[8,8]");             // in place it has no rule
  EXPECT_EQ(describe(call<"norm.Scalar">(*session_, b)), "f32[]");                 // dtype=fp32
  EXPECT_EQ(describe(call<"addcmul">(*session_, a, b, b)), "f32[8,8]");            // the widest
  EXPECT_EQ(describe(neg(b)), "bf16[8,8]");                                        // as it comes
  EXPECT_EQ(describe(mm(tensor({8, 8}, DType::f64), tensor({8, 8}, DType::f64))),  // never double
            "f64[8,8]");
  expect_mentions(message_of([&] { call<"binary_cross_entropy">(*session_, b, b); }),
                  "not safe under autocast");
}

// The CPU has lists of its own. Types: what PyTorch 2.11 gives its kernels (a TorchDispatchMode within torch.autocast("cpu")).
TEST_F(Autocasts, OfTheCpuFollowItsOwnRules) {
  session_ = make_session(platform_named("cpu"));
  const Tensor a = tensor({8, 8}), b = tensor({8, 8}, DType::bf16), row = tensor({8});
  const AutocastRegion region(*session_, true, DType::bf16);
  EXPECT_EQ(describe(mm(a, a)), "bf16[8,8]");
  EXPECT_EQ(describe(call<"addmv">(*session_, row, a, row)), "f32[8]");  // cast on the GPU, not here
  EXPECT_EQ(describe(exp(b)), "bf16[8,8]");                              // fp32 on the GPU
  EXPECT_EQ(describe(call<"softmax.int">(*session_, b, 1, Value())), "bf16[8,8]");
  EXPECT_EQ(describe(call<"norm.Scalar">(*session_, b)), "bf16[]");
  EXPECT_EQ(describe(call<"mse_loss">(*session_, b, b)), "f32[]");
  EXPECT_EQ(describe(call<"prod">(*session_, b)), "f32[]");
  EXPECT_EQ(describe(call<"trace">(*session_, b)), "f32[]");                    // as it comes on the GPU
  EXPECT_EQ(describe(call<"binary_cross_entropy">(*session_, b, b)), "f32[]");  // refused on the GPU
  EXPECT_EQ(describe(call<"cat">(*session_, std::vector<Tensor>{a, b})), "f32[16,8]");
}

// Kept by linear, layer norm, softmax, linear and mean squared error of 32 rows of 64; PyTorch 2.11's saved-tensor hooks see
// the same 18,688 bytes.
TEST_F(Autocasts, OfTheCpuKeepWhatItsOwnRulesMake) {
  session_ = make_session(platform_named("cpu"));
  const Tensor x = tensor({32, 64}), target = tensor({32, 16}), gain = leaf({64}), shift = leaf({64});
  const Tensor first = leaf({64, 64}), second = leaf({16, 64}), bias = leaf({64}), bias2 = leaf({16});
  const int64_t before = saved();
  const AutocastRegion region(*session_, true, DType::bf16);
  const Tensor hidden = call<"linear">(*session_, x, first, bias);
  const Tensor normal = call<"layer_norm">(*session_, hidden, Sizes{64}, gain, shift);
  const Tensor share = call<"softmax.int">(*session_, normal, 1, Value());
  const Tensor loss = call<"mse_loss">(*session_, call<"linear">(*session_, share, second, bias2), target);
  const int64_t rows =
      int64_t{32} * 64 * 2;  // bf16: the cast input, what the norm reads, what the softmax returns
  const int64_t statistics = int64_t{2} * 32 * 4;  // fp32: mean and 1 / deviation of each row
  const int64_t weight =
      int64_t{16} * 64 * 2;  // the second weight's cast; the first one's is not read: x needs no gradient
  const int64_t compared = int64_t{2} * 32 * 16 * 4;  // mean squared error is computed in fp32
  const int64_t state = int64_t{2} * 64 * 4;          // the norm's gain and shift
  EXPECT_EQ(saved() - before, 3 * rows + statistics + weight + compared + state);
  EXPECT_EQ(3 * rows + statistics + weight + compared, 18688);
}

TEST_F(Autocasts, AWeightIsCastOncePerRegion) {
  const Tensor weight = leaf({8, 8}), x = tensor({8, 8}, DType::bf16);
  mm(x, x);  // the workspace of matrix products stays
  const int64_t without = live();
  {
    const AutocastRegion region(*session_, true, DType::bf16);
    const size_t begin = mark();
    const Tensor first = mm(x, weight), second = mm(first, weight);
    EXPECT_EQ(casts_since(begin), 1);
    {
      const AutocastRegion inner(*session_, true, DType::bf16);
      mm(x, weight);
    }
    EXPECT_EQ(casts_since(begin), 1);  // the inner region's end keeps the casts
  }
  EXPECT_EQ(live(), without);  // the outer one's lets them go
  const AutocastRegion region(*session_, true, DType::bf16);
  const size_t begin = mark();
  mm(x, weight);
  EXPECT_EQ(casts_since(begin), 1);
}

TEST_F(Autocasts, GradientsOfAllUsesMeetAtTheKeptCast) {
  const Tensor weight = leaf({8, 8}), x = tensor({8, 8}, DType::bf16);
  Tensor y;
  {
    const AutocastRegion region(*session_, true, DType::bf16);
    y = mm(mm(x, weight), weight);
  }
  const size_t begin = mark();
  run_backward(y);
  const CallNames nodes = nodes_since(begin);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "ToCopyBackward0"), 1);
  EXPECT_EQ(describe(weight.grad()), "f32[8,8]");
}

TEST_F(Autocasts, OnlyLeavesOfFp32ThatRequireGradAreKept) {
  const Tensor weight = leaf({8, 8}), frozen = tensor({8, 8}), x = tensor({8, 8}, DType::bf16);
  struct Case {
    const char* what;
    Tensor factor;
    int64_t casts;
  };
  const Case cases[] = {{"a weight", weight, 1},
                        {"a frozen weight", frozen, 2},
                        {"a view of a weight", call<"t">(*session_, weight), 2},
                        {"an activation", neg(weight), 2},
                        {"what has the type already", x, 0}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const AutocastRegion region(*session_, true, DType::bf16);
    const size_t begin = mark();
    mm(x, one.factor);
    mm(x, one.factor);
    EXPECT_EQ(casts_since(begin), one.casts);
  }
}

TEST_F(Autocasts, TheCacheCanBeTurnedOff) {
  const Tensor weight = leaf({8, 8}), x = tensor({8, 8}, DType::bf16);
  const AutocastRegion region(*session_, true, DType::bf16, false);
  const size_t begin = mark();
  mm(x, weight);
  mm(x, weight);
  EXPECT_EQ(casts_since(begin), 2);
}

TEST_F(Autocasts, ACastMadeInNoGradModeHasAHistoryAllTheSame) {
  const Tensor weight = leaf({8, 8}), x = tensor({8, 8}, DType::bf16);
  const AutocastRegion region(*session_, true, DType::bf16);
  {
    Scoped<bool> no_grad(session_->modes.grad, false);
    mm(x, weight);
  }
  run_backward(mm(x, weight));
  EXPECT_EQ(describe(weight.grad()), "f32[8,8]");
}

TEST_F(Autocasts, ADisabledRegionComputesAsItIs) {
  const Tensor a = tensor({8, 8});
  const AutocastRegion region(*session_, true, DType::bf16);
  {
    const AutocastRegion disabled(*session_, false, DType::bf16);
    EXPECT_EQ(describe(mm(a, a)), "f32[8,8]");
  }
  EXPECT_EQ(describe(mm(a, a)), "bf16[8,8]");
}

TEST_F(Autocasts, BackwardRunsInTheTypesOfForward) {
  const Tensor weight = leaf({8, 8}), x = leaf({8, 8});
  Tensor y;
  {
    const AutocastRegion region(*session_, true, DType::f16);
    y = mm(x, weight);
  }
  EXPECT_EQ(describe(y), "f16[8,8]");
  run_backward(y);
  EXPECT_EQ(describe(x.grad()), "f32[8,8]");
}

}  // namespace
}  // namespace metaprof
