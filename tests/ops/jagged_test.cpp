// Sequences one behind the other: attention on them, and padding. What they take was seen of PyTorch 2.11's host code on an emulated
// H200.

#include "meta/autograd/engine/engine.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

// Four sequences of 85 rows together, of which the longest has 40; 4 heads of 32.
class Jagged : public ImageOps {
 protected:
  static constexpr int64_t kRows = 85, kSequences = 4, kLongest = 40, kHeads = 4, kHead = 32;

  Tensor begins(DType dtype) { return tensor(Sizes{kSequences + 1}, dtype); }
  Tensor rows(DType dtype) { return with_gradient(tensor(Sizes{kRows, kHeads, kHead}, dtype)); }
  Tensor batch_of_rows(DType dtype) { return with_gradient(tensor(Sizes{1, kRows, kHeads, kHead}, dtype)); }
  void run_backward(const Tensor& result) {
    const Tensor roots[] = {result}, gradients[] = {tensor(result.sizes(), result.dtype())};
    watch();
    backward(*session_, roots, gradients);
  }
  Results efficient(DType dtype) {
    const Tensor query = batch_of_rows(dtype), key = batch_of_rows(dtype), value = batch_of_rows(dtype);
    const Tensor sums = begins(DType::i32);
    watch();
    return call_all<"_efficient_attention_forward">(*session_, query, key, value, Value(), sums, sums,
                                                    kLongest, kLongest, 0.0, int64_t{0}, true);
  }
};

TEST_F(Jagged, FlashAttentionRoundsEachSequenceUpByATile) {
  const Tensor query = rows(DType::bf16), key = rows(DType::bf16), value = rows(DType::bf16);
  const Tensor sums = begins(DType::i32);
  watch();
  const Results made = call_all<"_flash_attention_forward">(*session_, query, key, value, sums, sums,
                                                            kLongest, kLongest, 0.0, false, false);
  const int64_t bytes = kRows * kHeads * kHead * 2;
  EXPECT_EQ(allocated(), (Blocks{bytes, kHeads * kRows * 4, 2 * 8, 8}));  // output, sums, random state
  EXPECT_EQ(Tensor(made[1]).sizes(), (Sizes{kHeads, kRows}));
  // As if each of 85 queries met 40 keys.
  EXPECT_EQ(counted("aten::_flash_attention_forward"), 2 * kHeads * kRows * kLongest * (kHead + kHead));
  run_backward(Tensor(made[0]));
  const int64_t padded = kRows + 128 * kSequences;
  EXPECT_EQ(allocated(), (Blocks{bytes, bytes, bytes, kHeads * padded * 4, padded * kHeads * kHead * 4}));
}

TEST_F(Jagged, EfficientAttentionKeepsARowForEachOfTheLongest) {
  const Results made = efficient(DType::bf16);
  const int64_t bytes = kRows * kHeads * kHead * 2;
  // Seed and offset of random numbers on the host; for each of the longest 40, rounded up to 64, a number.
  EXPECT_EQ(allocated(), (Blocks{8, 8, bytes, kSequences * kHeads * 64 * 4}));
  run_backward(Tensor(made[0]));
  // A sum for each row; a tile of 64 × 64 numbers with a lock and a counter for each head of each sequence.
  const int64_t tile = 16 + 64 * 64 * 4;
  EXPECT_EQ(allocated(), (Blocks{bytes, bytes, bytes, kRows * kHeads * 4, kSequences * kHeads * tile}));
}

TEST_F(Jagged, EfficientAttentionIn32BitsSumsBefore) {
  const Results made = efficient(DType::f32);
  run_backward(Tensor(made[0]));
  const int64_t bytes = kRows * kHeads * kHead * 4, sums = kRows * kHeads * 4;
  const int64_t tile = 16 + 64 * 64 * 4;
  // The gradients, the product of gradient and output, its sums, a copy of them by head, the workspace.
  EXPECT_EQ(allocated(), (Blocks{bytes, bytes, bytes, bytes, sums, sums, kSequences * kHeads * tile}));
}

TEST_F(Jagged, ArePaddedAndPutTogetherAgain) {
  const auto blocks = [&](DType dtype, int64_t width) {
    const Tensor values = tensor(Sizes{kRows, width}, dtype);
    const Value::Tensors offsets{begins(DType::i64)};
    watch();
    const Tensor padded =
        call<"_jagged_to_padded_dense_forward">(*session_, values, offsets, Sizes{kLongest}, 0.0);
    EXPECT_EQ(padded.sizes(), (Sizes{kSequences, kLongest, width}));
    call<"_padded_dense_to_jagged_forward">(*session_, padded, offsets, kRows);
    return allocated();
  };
  const auto dense = [](int64_t width) { return kSequences * kLongest * width; };
  EXPECT_EQ(blocks(DType::f32, 256), (Blocks{dense(256) * 4, kRows * 256 * 4, kRows * 256 * 4}));
  // Rows of 16 bytes and more: which sequence each of 85 rows is of, and where in it.
  EXPECT_EQ(blocks(DType::f16, 256),
            (Blocks{dense(256) * 2, kRows * 256 * 2, kRows * 256 * 2, kRows * 4, kRows * 4}));
  EXPECT_EQ(blocks(DType::f16, 100), (Blocks{dense(100) * 2, kRows * 100 * 2, kRows * 100 * 2}));
  EXPECT_EQ(blocks(DType::bf16, 256), (Blocks{dense(256) * 2, kRows * 256 * 2, kRows * 256 * 2}));
}

}  // namespace
}  // namespace metaprof
