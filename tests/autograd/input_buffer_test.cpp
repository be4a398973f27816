// Where gradients meet: in place or not, on which stream, and what the trace says about it.

#include "meta/autograd/engine/input_buffer.h"

#include "meta/allocator/caching_allocator.h"
#include "meta/autograd/graph/views.h"
#include "meta/ops/sparse/sparse.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/phases.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

constexpr Device kFirst{DeviceType::cuda, 0}, kSecond{DeviceType::cuda, 1}, kThird{DeviceType::cuda, 2};

constexpr Layout kDense = Layout::strided, kCoo = Layout::sparse, kCsr = Layout::sparse_csr,
                 kCsc = Layout::sparse_csc, kBsr = Layout::sparse_bsr, kBsc = Layout::sparse_bsc;

class Buffers : public Graph {
 protected:
  /// [10,4]: dense; three rows of it; six elements by row or by column; two blocks of 5 × 2.
  Tensor gradient(Layout layout, Device device = kFirst) {
    auto part = [&](std::initializer_list<int64_t> sizes, DType dtype) {
      return session_->empty(Sizes(sizes), dtype, device);
    };
    auto compressed = [&](int64_t lines, int64_t n, std::initializer_list<int64_t> values) {
      return make_sparse_compressed(*session_, layout, part({lines + 1}, DType::i64), part({n}, DType::i64),
                                    part(values, DType::f32), Sizes{10, 4});
    };
    switch (layout) {
      case kDense: break;
      case kCoo:
        return make_sparse(*session_, part({1, 3}, DType::i64), part({3, 4}, DType::f32), Sizes{10, 4});
      case kCsr: return compressed(10, 6, {6});
      case kCsc: return compressed(4, 6, {6});
      case kBsr:
      case kBsc: return compressed(2, 2, {2, 5, 2});
    }
    return session_->empty(Sizes{10, 4}, DType::f32, device);
  }

  static std::vector<uint32_t> storages_of(const Tensor& tensor) {
    if (!tensor.is_sparse()) return {tensor->storage->id};
    std::vector<uint32_t> ids;
    for (const Ref<TensorImpl>& part : tensor->extra->parts) ids.push_back(part->storage->id);
    return ids;
  }

  /// Waits and record-stream events since then, in words.
  CallNames synchronisation_since(size_t begin) const {
    CallNames words;
    for (size_t i = begin; i < session_->trace.events.size(); ++i) {
      const Event& event = session_->trace.events[i];
      if (event.kind == Event::Kind::wait)
        words.push_back("stream " + std::to_string(event.stream) + " waits for " + std::to_string(event.id));
      if (event.kind == Event::Kind::record_stream)
        words.push_back("storage " + std::to_string(event.id) + " on stream " + std::to_string(event.stream));
    }
    return words;
  }
  /// The stream of the last allocation since then; nothing if there was none.
  std::optional<int> allocated_on(size_t begin) const {
    std::optional<int> stream;
    for (size_t i = begin; i < session_->trace.events.size(); ++i)
      if (session_->trace.events[i].kind == Event::Kind::alloc) stream = session_->trace.events[i].stream;
    return stream;
  }
};

// Until 2.7.
struct FormerCase {
  const char* rule;
  Device gradient;
  Stream producer, consumer;
  int accumulates_on;
  // Which streams must meet: the one that accumulates waits for this one. -1: none.
  int waits_for;
};

// The five cases of torch/csrc/autograd/input_buffer.cpp in 2.6, with the same stream and with different ones.
const FormerCase kFormerCases[] = {
    {"(1) a host gradient has no stream", kHost, {kFirst, 1}, {kFirst, 2}, 0, -1},
    {"(1) the same with host nodes", kHost, {kHost, 0}, {kHost, 0}, 0, -1},
    {"(2) one device, same stream", kFirst, {kFirst, 1}, {kFirst, 1}, 1, -1},
    {"(2) one device, default stream", kFirst, {kFirst, 0}, {kFirst, 0}, 0, -1},
    {"(2) one device, different streams", kFirst, {kFirst, 1}, {kFirst, 2}, 2, 1},
    {"(3) the consumer's device, its default stream", kFirst, {kSecond, 1}, {kFirst, 0}, 0, -1},
    {"(3) the consumer's device, another stream", kFirst, {kSecond, 1}, {kFirst, 2}, 2, 0},
    {"(3) the same from the host", kFirst, {kHost, 0}, {kFirst, 2}, 2, 0},
    {"(4) the producer's device, its default stream", kFirst, {kFirst, 0}, {kSecond, 2}, 0, -1},
    {"(4) the producer's device, another stream", kFirst, {kFirst, 1}, {kSecond, 2}, 0, 1},
    {"(4) the same to the host", kFirst, {kFirst, 1}, {kHost, 0}, 0, 1},
    {"(5) neither's device, same stream number", kThird, {kFirst, 0}, {kSecond, 0}, 0, -1},
    {"(5) neither's device, different streams", kThird, {kFirst, 1}, {kSecond, 2}, 0, -1},
};

// From 2.8 on.
struct StreamCase {
  const char* rule;
  Device gradient;
  Stream producer, consumer;
  int first_used_on;       // the stream that the first gradient is marked as used on; -1: none
  int accumulates_on;      // the second is added there
  int waits_for;           // what it waits for, for each of the two; -1: nothing
  int consumer_waits_for;  // before the node runs; -1: nothing
};

// Cases A to C of torch/csrc/autograd/input_buffer.cpp in 2.11: the gradient is on the consumer's device, only on the
// producer's, or on neither's. A host node has no stream: the gradient's device's current one stands for it.
const StreamCase kStreamCases[] = {
    {"a host gradient has no stream", kHost, {kFirst, 1}, {kFirst, 2}, -1, 0, -1, -1},
    {"the same with host nodes", kHost, {kHost, 0}, {kHost, 0}, -1, 0, -1, -1},
    {"(A) one device, same stream", kFirst, {kFirst, 1}, {kFirst, 1}, -1, 1, -1, -1},
    {"(A) one device, different streams", kFirst, {kFirst, 1}, {kFirst, 2}, 2, 2, 1, -1},
    {"(A) another device's producer, default stream", kFirst, {kSecond, 1}, {kFirst, 0}, 0, 0, 1, -1},
    {"(A) another device's producer", kFirst, {kSecond, 1}, {kFirst, 2}, 2, 2, 1, -1},
    {"(A) a producer of the host", kFirst, {kHost, 0}, {kFirst, 2}, 2, 2, 0, -1},
    {"(A) a producer of the host, default stream", kFirst, {kHost, 0}, {kFirst, 0}, -1, 0, -1, -1},
    {"(B) the producer's default stream", kFirst, {kFirst, 0}, {kSecond, 2}, -1, 0, -1, 0},
    {"(B) the producer's stream", kFirst, {kFirst, 1}, {kSecond, 2}, -1, 1, -1, 1},
    {"(A) a consumer of the host", kFirst, {kFirst, 1}, {kHost, 0}, -1, 1, -1, -1},
    {"(C) neither's device", kThird, {kFirst, 1}, {kSecond, 2}, -1, 0, 1, 0},
};

TEST_F(Buffers, TheFirstGradientDecidesTheStream) {
  for (const Layout layout : {kDense, kCoo, kCsr, kCsc, kBsr, kBsc}) {
    for (const StreamCase& one : kStreamCases) {
      SCOPED_TRACE(std::string(one.rule) + ", " + std::string(name_of(layout)));
      session_ = make_session(platform_named("h200"));
      session_->stream = 7;  // what is current meanwhile does not matter
      const Tensor first = gradient(layout, one.gradient), second = gradient(layout, one.gradient);
      auto uses = [&](const Tensor& tensor, int stream, CallNames& words) {
        for (uint32_t storage : storages_of(tensor))
          words.push_back("storage " + std::to_string(storage) + " on stream " + std::to_string(stream));
      };
      InputBuffer buffer(1);
      size_t begin = mark();
      buffer.add(*session_, 0, first, one.producer, one.consumer);
      CallNames expected;
      if (one.first_used_on >= 0) uses(first, one.first_used_on, expected);
      EXPECT_EQ(synchronisation_since(begin), expected);
      EXPECT_FALSE(allocated_on(begin));  // the first gradient is only moved in

      expected.clear();
      const std::string on = std::to_string(one.accumulates_on);
      if (one.waits_for >= 0) {
        for (const Tensor* tensor : {&second, &first}) {
          expected.push_back("stream " + on + " waits for " + std::to_string(one.waits_for));
          uses(*tensor, one.accumulates_on, expected);
        }
      }
      begin = mark();
      if (layout == kCsc || layout == kBsr || layout == kBsc) {  // which cannot be added
        EXPECT_THROW(buffer.add(*session_, 0, second, one.producer, one.consumer), Error);
        EXPECT_EQ(synchronisation_since(begin), expected);
        continue;
      }
      // `first` is held here, too, so the sum is made anew: on the stream that accumulates.
      buffer.add(*session_, 0, second, one.producer, one.consumer);
      EXPECT_EQ(synchronisation_since(begin), expected);
      EXPECT_EQ(allocated_on(begin), one.accumulates_on);
      EXPECT_EQ(session_->stream, 7);
      EXPECT_EQ(buffer[0]->layout, layout);

      expected.clear();
      if (one.consumer_waits_for >= 0)
        expected.push_back("stream " + std::to_string(one.consumer.id) + " waits for " +
                           std::to_string(one.consumer_waits_for));
      begin = mark();
      buffer.wait(*session_, one.consumer);
      EXPECT_EQ(synchronisation_since(begin), expected);
    }
  }
}

TEST_F(Buffers, UntilVersion27EveryGradientIsACaseOfItsOwn) {
  for (const Layout layout : {kDense, kCoo, kCsr}) {
    for (const FormerCase& one : kFormerCases) {
      SCOPED_TRACE(std::string(one.rule) + ", " + std::string(name_of(layout)));
      session_ = make_session(with_framework(platform_named("h200"), {.major = 2, .minor = 7, .patch = 1}));
      session_->stream = 7;
      const Tensor first = gradient(layout, one.gradient), second = gradient(layout, one.gradient);
      CallNames expected;
      if (one.waits_for >= 0) {
        const std::string on = std::to_string(one.accumulates_on);
        expected.push_back("stream " + on + " waits for " + std::to_string(one.waits_for));
        for (uint32_t storage : storages_of(first))
          expected.push_back("storage " + std::to_string(storage) + " on stream " + on);
      }
      InputBuffer buffer(1);
      size_t begin = mark();
      buffer.add(*session_, 0, first, one.producer, one.consumer);
      EXPECT_EQ(synchronisation_since(begin), expected);
      begin = mark();
      buffer.add(*session_, 0, second, one.producer, one.consumer);
      EXPECT_EQ(synchronisation_since(begin).size(), expected.size());
      EXPECT_EQ(allocated_on(begin), one.accumulates_on);
      begin = mark();
      buffer.wait(*session_, one.consumer);
      EXPECT_EQ(mark(), begin);
    }
  }
}

TEST_F(Buffers, SkipWhatIsUndefined) {
  InputBuffer buffer(2);
  const size_t begin = mark();
  buffer.add(*session_, 0, Tensor(), {kFirst, 1}, {kFirst, 2});
  EXPECT_FALSE(buffer[0].defined());
  EXPECT_EQ(mark(), begin);
  const Tensor only = gradient(kDense);
  buffer.add(*session_, 1, only, {kFirst, 0}, {kFirst, 0});
  buffer.add(*session_, 1, Tensor(), {kFirst, 0}, {kFirst, 0});
  EXPECT_EQ(buffer[1], only);
}

// A gradient in the buffer is written only if nobody else can see it.
TEST_F(Buffers, AccumulateInPlaceOnlyAsTheSoleOwner) {
  auto run = [&](const char* who, Tensor first, bool in_place, bool grad_mode = false) {
    SCOPED_TRACE(who);
    const Tensor second = tensor({10, 4});
    const Storage* before = first->storage.get();
    Scoped<bool> mode(session_->modes.grad, grad_mode);
    InputBuffer buffer(1);
    buffer.add(*session_, 0, std::move(first), {kFirst, 0}, {kFirst, 0});
    const size_t begin = mark();
    buffer.add(*session_, 0, second, {kFirst, 0}, {kFirst, 0});
    EXPECT_EQ(calls_since(begin), CallNames{in_place ? "add_.Tensor" : "add.Tensor"});
    EXPECT_EQ(buffer[0]->storage.get() == before, in_place);
  };
  run("sole owner", tensor({10, 4}), true);
  run("sole owner, with grad mode on", tensor({10, 4}), false, true);
  const Tensor held = tensor({10, 4});
  run("shared handle", held, false);
  run("shared storage", alias(held), false);
  {
    Tensor base = tensor({40});
    const Tensor whole = view(base, Sizes{10, 4});
    run("view of a living tensor", whole, false);
  }
  run("expanded", expand(tensor({1, 4}), Sizes{10, 4}), false);
  auto with_strides = [&](const Sizes& strides) {
    return session_->empty_strided(Sizes{10, 4}, strides, DType::f32, kFirst);
  };
  run("expanded, and the sole owner of its storage", with_strides({0, 1}), false);
  run("with gaps, and the sole owner", with_strides({8, 1}), false);
  run("transposed, and the sole owner", with_strides({1, 10}), true);
  // A view keeps its base, and with it a second handle to the storage.
  run("view whose base has no other handle", view(tensor({40}), Sizes{10, 4}), false);
}

// torch/csrc/autograd/input_buffer.cpp, accumulate: a sparse tensor is never added in place, and nothing is written in
// place when it arrives; COO and CSR that came first are added to what is dense.
TEST_F(Buffers, AddSparseAndDenseGradients) {
  struct Case {
    Layout first, second;
    bool sole;  // owner of the dense one
    const char* op;
    Layout result;
  };
  const Case cases[] = {
      {kDense, kCoo, true, "add.Tensor", kDense},  {kDense, kCoo, false, "add.Tensor", kDense},
      {kDense, kCsr, true, "add.Tensor", kDense},  {kDense, kCsr, false, "add.Tensor", kDense},
      {kDense, kCsc, true, "add.Tensor", kDense},  {kCoo, kDense, true, "add_.Tensor", kDense},
      {kCoo, kDense, false, "add.Tensor", kDense}, {kCsr, kDense, true, "add_.Tensor", kDense},
      {kCsr, kDense, false, "add.Tensor", kDense}, {kCsc, kDense, true, "add.Tensor", kDense},
      {kCoo, kCoo, true, "add.Tensor", kCoo},      {kCsr, kCsr, true, "add.Tensor", kCsr},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(name_of(one.first)) + " + " + std::string(name_of(one.second)) +
                 (one.sole ? "" : ", held"));
    Scoped<bool> no_grad(session_->modes.grad, false);
    Tensor first = gradient(one.first), second = gradient(one.second);
    const Tensor held = one.sole ? Tensor() : one.first == kDense ? first : second;
    InputBuffer buffer(1);
    buffer.add(*session_, 0, std::move(first), {kFirst, 0}, {kFirst, 0});
    const size_t begin = mark();
    buffer.add(*session_, 0, std::move(second), {kFirst, 0}, {kFirst, 0});
    const CallNames calls = calls_since(begin);
    ASSERT_FALSE(calls.empty());
    EXPECT_EQ(calls[0], one.op);
    EXPECT_EQ(buffer[0]->layout, one.result);
    EXPECT_EQ(describe(buffer[0]), "f32[10,4]");
  }
}

// What PyTorch 2.11 refuses when both gradients of a tensor come from a function that returns them (tried on the CPU).
TEST_F(Buffers, RefuseSumsThatTheFrameworkDoesNotHave) {
  const std::pair<Layout, Layout> pairs[] = {{kCsc, kCsc},   {kBsr, kBsr},   {kBsc, kBsc}, {kBsr, kDense},
                                             {kDense, kBsr}, {kBsc, kDense}, {kCoo, kCsr}, {kCsr, kCoo}};
  for (const auto& [first, second] : pairs) {
    SCOPED_TRACE(std::string(name_of(first)) + " + " + std::string(name_of(second)));
    Scoped<bool> no_grad(session_->modes.grad, false);
    InputBuffer buffer(1);
    buffer.add(*session_, 0, gradient(first), {kFirst, 0}, {kFirst, 0});
    const std::string message = message_of([&, second = second] {
      buffer.add(*session_, 0, gradient(second), {kFirst, 0}, {kFirst, 0});
    });
    EXPECT_NE(message.find("sum of"), std::string::npos) << message;
  }
}

// A function whose backward returns this gradient for its argument.
class Returns final : public Node {
 public:
  Returns(const Tensor& of, Tensor gradient)
      : Node(session_of(of), "Returns", 0), gradient_(std::move(gradient)) {
    add_next(gradient_edge(of));
    record_edges();
  }
  Gradients apply(Gradients&) override { return {gradient_}; }

 private:
  Tensor gradient_;
};

// A gradient has its tensor's layout, is strided, or COO (torch/csrc/autograd/engine.cpp, validate_outputs).
TEST_F(Buffers, RefuseALayoutThatTheInputDoesNotHave) {
  for (const Layout layout : {kDense, kCoo, kCsr, kCsc, kBsr, kBsc}) {
    const Tensor x = leaf({10, 4});
    Tensor y = tensor({10, 4});
    y->requires_grad = true;
    Ref<Node> node = make<Returns>(x, gradient(layout));
    const uint32_t output = node->add_output(y);
    set_gradient_edge(y, {node, output});
    if (layout == kDense || layout == kCoo) {
      run_backward(y);
      EXPECT_EQ(x.grad()->layout, layout);
      continue;
    }
    EXPECT_EQ(message_of([&] { run_backward(y); }), "Returns: returned an invalid gradient at index 0: a " +
                                                        std::string(name_of(layout)) +
                                                        " tensor for one that is strided");
  }
}

// A chain over two streams: the gradient that the second stream's node makes is used on the first one, and
// its block is not given out again before that work.
TEST_F(Buffers, RecordStreamDelaysTheReuseOfABlock) {
  const Tensor x = leaf({1024});
  Tensor loss;
  {
    Scoped<uint16_t> side(session_->stream, 3);
    loss = exp(x);
  }
  loss = neg(loss);  // on the default stream: its gradient is made here and consumed on stream 3
  const size_t begin = mark();
  run_backward(loss);
  const CallNames words = synchronisation_since(begin);
  ASSERT_EQ(words.size(), 2U);
  EXPECT_TRUE(words[0].ends_with(" on stream 3")) << words[0];
  EXPECT_EQ(words[1], "stream 3 waits for 0");

  CachingAllocator allocator({.events_complete_at_once = false});
  replay(session_->trace, kFirstGpu, allocator);
  const int64_t used = allocator.statistics().allocated_bytes.all.current;
  // What backward's neg made is given back, but stays active until stream 3 is through.
  EXPECT_EQ(allocator.statistics().active_bytes.all.current, used + 4096);
  allocator.complete_events(3);
  EXPECT_TRUE(allocator.allocate(64, 0));
  EXPECT_EQ(allocator.statistics().active_bytes.all.current, used + 512);
}

}  // namespace
}  // namespace metaprof
