// Conjugates and negatives are views with a mark; who cannot read the mark gets a copy. Blocks are those of PyTorch 2.11 on
// an emulated H200.

#include "meta/ops/rules/conjugates.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class Marks : public Graph {
 protected:
  Tensor complex(std::initializer_list<int64_t> sizes) { return tensor(sizes, DType::c64); }
  /// Bytes of the blocks that it asks for, in order.
  template <class Run>
  Blocks blocks(Run run) {
    const size_t begin = mark();
    const auto kept = run();
    Blocks bytes;
    for (size_t i = begin; i < session_->trace.events.size(); ++i) {
      const Event& event = session_->trace.events[i];
      if (event.kind == Event::Kind::alloc) bytes.push_back(session_->trace.bytes(event.id).count);
    }
    return bytes;
  }
};

TEST_F(Marks, AreSetAndTakenAwayByViews) {
  const Tensor x = complex({4, 6});
  const Tensor once = conj(x), twice = conj(once);
  EXPECT_EQ(once->marks, kConjugated);
  EXPECT_EQ(twice->marks, 0);
  EXPECT_EQ(transpose(once, 0, 1)->marks, kConjugated);
  EXPECT_EQ(blocks([&] { return conj(transpose(once, 0, 1)); }), Blocks{});
  EXPECT_EQ((call<"detach">(*session_, once)->marks), kConjugated);
  EXPECT_EQ(blocks([&] { return call<"detach">(*session_, once); }), Blocks{});
  EXPECT_EQ(blocks([&] { return call<"conj_physical_">(*session_, conj(complex({2}))); }), (Blocks{2 * 8}))
      << "of what it is called with alone";
  EXPECT_EQ((call<"resolve_conj">(*session_, once)->marks), 0);
  EXPECT_EQ(blocks([&] { return call<"resolve_conj">(*session_, once); }), (Blocks{4 * 6 * 8}));
  EXPECT_EQ(blocks([&] { return call<"resolve_conj">(*session_, x); }), Blocks{});
}

TEST_F(Marks, AreReadByCopiesAndCopiedForOthers) {
  const Tensor x = complex({4, 6}), y = complex({4, 6}), marked = conj(x);
  EXPECT_EQ(blocks([&] { return clone(marked); }), (Blocks{192}));
  EXPECT_EQ(blocks([&] { return call<"copy_">(*session_, y, marked); }), Blocks{});
  EXPECT_EQ(blocks([&] { return marked * y; }), (Blocks{192, 192})) << "a copy, then the result";
  EXPECT_EQ(blocks([&] { return marked * marked; }), (Blocks{192, 192, 192}));
  EXPECT_EQ(blocks([&] { return call<"zeros_like">(*session_, marked); }), (Blocks{192, 192}));
  EXPECT_EQ(blocks([&] {
              return call<"cat">(*session_, Value(Value::Tensors{marked, y}));
            }),
            (Blocks{192, 384}));
  EXPECT_EQ(marked->marks, kConjugated) << "the tensor itself is as it was";
}

// An argument that is written to is a copy, which is copied back.
TEST_F(Marks, AreKeptByWhatIsWrittenInPlace) {
  const Tensor x = complex({4, 6}), y = complex({4, 6}), marked = conj(x);
  const uint32_t version = x->version();
  Tensor result;
  EXPECT_EQ(blocks([&] { return result = call<"add_.Tensor">(*session_, marked, y); }), (Blocks{192}));
  EXPECT_EQ(result.get(), marked.get());
  EXPECT_EQ(marked->marks, kConjugated);
  EXPECT_EQ(x->version(), version + 1);
}

// cuBLAS conjugates what it transposes.
TEST_F(Marks, OfMatricesAreReadWhereTheyLieAcrossTheResult) {
  const Tensor a = complex({4, 6}), b = complex({4, 5}), c = complex({6, 5});
  mm(a, c);  // takes the workspace
  EXPECT_EQ(blocks([&] { return mm(conj(transpose(a, 0, 1)), b); }), (Blocks{6 * 5 * 8}));
  EXPECT_EQ(blocks([&] { return mm(conj(a), c); }), (Blocks{4 * 5 * 8, 4 * 6 * 8}));
  const Tensor many = complex({2, 4, 6}), others = complex({2, 4, 5}), rows = complex({2, 6, 5});
  EXPECT_EQ(blocks([&] { return bmm(conj(transpose(many, 1, 2)), others); }), (Blocks{2 * 6 * 5 * 8}));
  EXPECT_EQ(blocks([&] { return bmm(conj(many), rows); }), (Blocks{2 * 4 * 5 * 8, 2 * 4 * 6 * 8}));
}

TEST_F(Marks, OfTheImaginaryPartOfAConjugateAreNegative) {
  const Tensor x = complex({4, 6}), marked = conj(x);
  const Tensor imaginary = call<"imag">(*session_, marked), real_part = call<"real">(*session_, marked);
  EXPECT_EQ(imaginary->marks, kNegated);
  EXPECT_EQ(real_part->marks, 0);
  EXPECT_EQ(blocks([&] { return imaginary * imaginary; }), (Blocks{96, 96, 96}));
  EXPECT_EQ(blocks([&] { return call<"resolve_neg">(*session_, imaginary); }), (Blocks{96}));
  EXPECT_THROW((call<"view_as_real">(*session_, marked)), Error);
}

TEST_F(Marks, AreCopiedInTheGradientOfAProduct) {
  Tensor x = complex({4, 6}), y = complex({4, 6});
  x->requires_grad = true;
  const Tensor product = x * y;
  const size_t begin = mark();
  run_backward(product);
  EXPECT_EQ(calls_since(begin), (CallNames{"_conj", "mul.Tensor"}));
}

TEST_F(Marks, OfNobodyLeaveTheDispatcherAsItIs) {
  const LayerFunction before = session_->layers[static_cast<int>(Layer::kernel)];
  (void)(tensor({2}) * tensor({2}));
  EXPECT_EQ(session_->layers[static_cast<int>(Layer::kernel)], before);
  (void)conj(complex({2}));
  EXPECT_NE(session_->layers[static_cast<int>(Layer::kernel)], before);
}

}  // namespace
}  // namespace metaprof
