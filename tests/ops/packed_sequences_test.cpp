// Packed sequences: how many have each step is what the program says its lists on the host hold.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class PackedSequences : public ImageOps {
 protected:
  Tensor list(const Sizes& integers) {
    Tensor list = session_->empty(Sizes{int64_t(integers.size())}, DType::i64, Device{DeviceType::cpu});
    tell_integers(list, integers);
    return list;
  }
  static Sizes told(const Tensor& list) { return integers_in(list) ? *integers_in(list) : Sizes{}; }
};

// Three sequences of 5, 4 and 2 steps, of which each has 8 floats.
TEST_F(PackedSequences, StepsOfAsManySequencesAreOneBlock) {
  const Tensor padded = tensor(Sizes{3, 5, 8}), lengths = list({5, 4, 2});
  watch();
  const Results packed = call_all<"_pack_padded_sequence">(*session_, padded, lengths, true);
  // A list of 5 steps on the host. Two steps of 3, two of 2, one of 1: the last lies together and is not copied.
  EXPECT_EQ(allocated(), (Blocks{5 * 8, 2 * 3 * 8 * 4, 2 * 2 * 8 * 4, (5 + 4 + 2) * 8 * 4}));
  EXPECT_EQ(Tensor(packed[0]).sizes(), (Sizes{11, 8}));
  EXPECT_EQ(told(packed[1]), (Sizes{3, 3, 2, 2, 1}));
}

TEST_F(PackedSequences, ArePaddedAgain) {
  const Results padded =
      call_all<"_pad_packed_sequence">(*session_, tensor(Sizes{11, 8}), list({3, 3, 2, 2, 1}), true, 0.0, 7);
  EXPECT_EQ(Tensor(padded[0]).sizes(), (Sizes{3, 7, 8}));  // by batch, of 7 steps
  EXPECT_EQ(told(padded[1]), (Sizes{5, 4, 2}));
}

TEST_F(PackedSequences, WithoutNumbersAllAreAsLongAsTheInput) {
  const Tensor unknown = session_->empty(Sizes{3}, DType::i64, Device{DeviceType::cpu});
  const Results packed = call_all<"_pack_padded_sequence">(*session_, tensor(Sizes{5, 3, 8}), unknown, false);
  EXPECT_EQ(Tensor(packed[0]).sizes(), (Sizes{15, 8}));
  EXPECT_TRUE(
      std::ranges::any_of(session_->trace.calls, [](const CallRecord& call) { return call.assumed; }));
}

TEST_F(PackedSequences, LengthsThatDoNotFitAreRefused) {
  const Tensor padded = tensor(Sizes{5, 3, 8});
  const auto pack = [&](const Sizes& lengths) {
    call_all<"_pack_padded_sequence">(*session_, padded, list(lengths), false);
  };
  EXPECT_THROW(pack({2, 4, 5}), Error);  // not the longest first
  EXPECT_THROW(pack({6, 4, 2}), Error);  // longer than the input
  EXPECT_THROW(pack({5, 4, 0}), Error);
  EXPECT_THROW(pack({5, 4}), Error);  // of another batch
  EXPECT_THROW(call_all<"_pad_packed_sequence">(*session_, tensor(Sizes{11, 8}), list({3, 3}), true, 0.0, 0),
               Error);  // 6 rows, not 11
}

// cuDNN's temporary space is that of 5 steps of all 3 sequences, whatever has ended (cudnnGetRNNTempSpaceSizes).
TEST_F(PackedSequences, CudnnTakesWhatTheLongestOnesWouldTake) {
  const Tensor state = tensor(Sizes{1, 3, 16});
  const Value::Tensors weights{tensor(Sizes{64, 8}), tensor(Sizes{64, 16}), tensor(Sizes{64}),
                               tensor(Sizes{64})};
  const Results all =
      call_all<"_cudnn_rnn">(*session_, tensor(Sizes{11, 8}), weights, 4, Value(), state, state, 2, 16, 0, 1,
                             false, 0.0, true, false, Sizes{3, 3, 2, 2, 1}, Value());
  EXPECT_EQ(Tensor(all[0]).sizes(), (Sizes{11, 16}));
  EXPECT_EQ(Tensor(all[3]).numel(), 5 * 3 * 16 * 4 * (4 + 2));  // the reserve: 4 gates, cell and state
}

}  // namespace
}  // namespace metaprof
