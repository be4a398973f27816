// Compiled flex attention: what the functions that torch.compile makes of it ask for (torch/_inductor/kernel/flex).

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

std::vector<int64_t> requests(const Session& session, size_t first_event) {
  std::vector<int64_t> bytes;
  for (size_t i = first_event; i < session.trace.events.size(); ++i)
    if (session.trace.events[i].kind == Event::Kind::alloc)
      bytes.push_back(session.trace.storages[session.trace.events[i].id].bytes.count);
  return bytes;
}

struct Attention {
  std::unique_ptr<Session> session = make_session(platform_named("h200"));
  Tensor query, key, value, bias;

  Attention(int64_t queries, int64_t batch_of_keys, int64_t heads_of_keys) {
    const auto leaf = [&](const Sizes& sizes, DType dtype) {
      Tensor made = session->empty_strided(sizes, contiguous_strides(sizes), dtype, session->device);
      made->requires_grad = true;
      return made;
    };
    query = leaf({2, 4, queries, 32}, DType::bf16);
    key = leaf({batch_of_keys, heads_of_keys, 256, 32}, DType::bf16);
    value = leaf({batch_of_keys, heads_of_keys, 256, 32}, DType::bf16);
    bias = leaf({4, 512}, DType::f32);
  }
  Tensor run() {
    return call_all<"metaprof::flex_attention">(*session, query, key, value, Value::Tensors{},
                                                Value::Tensors{bias}, Value::Tensors{})[0];
  }
};

TEST(FlexAttention, ForwardAsksForRowsAndForItsResult) {
  Attention attention(256, 2, 2);
  const size_t before = attention.session->trace.events.size();
  const Tensor out = attention.run();
  // Sums and maxima of 2·4·256 rows of 4 bytes; 2·4·256·32 elements of 2 bytes.
  EXPECT_EQ(requests(*attention.session, before), (std::vector<int64_t>{8192, 8192, 131072}));
}

TEST(FlexAttention, ShortQueriesSplitTheirKeysAmongMultiprocessors) {
  Attention attention(64, 2, 2);
  const size_t before = attention.session->trace.events.size();
  const Tensor out = attention.run();
  // 132 multiprocessors, 2·2 heads of keys: 132 / 4 · 2 = 66 parts of 2·4·64 rows of 4 bytes, each twice, and once by 32; then the
  // rows of 4 bytes of the whole; 2·4·64·32 elements of 2 bytes.
  EXPECT_EQ(requests(*attention.session, before),
            (std::vector<int64_t>{135168, 135168, 4325376, 2048, 2048, 2048, 32768, 2048}));
}

TEST(FlexAttention, BackwardAsksForOneNumberARowAndForGradients) {
  Attention attention(256, 1, 4);
  const Tensor out = attention.run();
  const Tensor gradient = attention.session->empty_strided(out.sizes(), contiguous_strides(out.sizes()),
                                                           DType::bf16, out.device());
  const size_t before = attention.session->trace.events.size();
  const std::vector<Tensor> roots{out}, gradients{gradient};
  backward(*attention.session, roots, gradients);
  // The bias's gradient 4·512·4; rows 2·4·256·4; gradients of query, value and key for the whole batch, 131072 each; summed to
  // one element of the batch, keys and values.
  EXPECT_EQ(requests(*attention.session, before),
            (std::vector<int64_t>{8192, 8192, 131072, 131072, 131072, 65536, 65536}));
}

TEST(FlexAttention, RefusesHeadsThatCannotBeShared) {
  Attention attention(256, 2, 3);
  EXPECT_THROW(attention.run(), Error);
}

}  // namespace
}  // namespace metaprof
