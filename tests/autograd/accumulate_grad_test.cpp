// How .grad is made and grows: taken over, copied, added to; the layout contract; sparse gradients.

#include "meta/autograd/graph/accumulate_grad.h"

#include "meta/ops/sparse/sparse.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class Accumulation : public Graph {
 protected:
  /// Gives the leaf's accumulator this gradient; the operators that were called.
  CallNames accumulate(const Tensor& leaf, Tensor gradient) {
    Scoped<bool> no_grad(session_->modes.grad, false);
    const Ref<Node> node = accumulator_of(leaf);
    Gradients incoming{std::move(gradient)};
    const size_t begin = mark();
    node->apply(incoming);
    return calls_since(begin);
  }
  Tensor with_strides(const Sizes& sizes, const Sizes& strides) {
    return session_->empty_strided(sizes, strides, DType::f32, session_->device);
  }
  /// Rows of a table [10,4].
  Tensor rows(int64_t count) {
    return make_sparse(*session_, tensor({1, count}, DType::i64), tensor({count, 4}), Sizes{10, 4});
  }
  Tensor compressed_rows(int64_t count) {
    return make_sparse_compressed(*session_, Layout::sparse_csr, tensor({11}, DType::i64),
                                  tensor({count}, DType::i64), tensor({count}), Sizes{10, 4});
  }
};

const CallNames kCopied{"new_empty_strided", "copy_"};

TEST_F(Accumulation, TakesOverAGradientThatNobodyElseHolds) {
  const Tensor x = leaf({10, 4});
  Tensor gradient = tensor({10, 4});
  const Storage* storage = gradient->storage.get();
  EXPECT_EQ(accumulate(x, std::move(gradient)), CallNames{});
  EXPECT_EQ(x.grad()->storage.get(), storage);
  EXPECT_FALSE(x.grad().requires_grad());
}

TEST_F(Accumulation, CopiesAGradientThatSomebodyHolds) {
  const Tensor x = leaf({10, 4}), gradient = tensor({10, 4});
  EXPECT_EQ(accumulate(x, gradient), kCopied);
  EXPECT_NE(x.grad()->storage, gradient->storage);
}

TEST_F(Accumulation, AddsInPlaceFromThenOn) {
  const Tensor x = leaf({10, 4});
  accumulate(x, tensor({10, 4}));
  const Storage* storage = x.grad()->storage.get();
  EXPECT_EQ(accumulate(x, tensor({10, 4})), CallNames{"add_.Tensor"});
  EXPECT_EQ(x.grad()->storage.get(), storage);
}

// A dense variable's gradient has its strides; a variable with gaps has a row-major one.
TEST_F(Accumulation, KeepsTheLayoutContract) {
  struct Case {
    const char* what;
    Sizes variable, gradient, result;
    bool copies;
  };
  const Case cases[] = {
      {"both row-major", {4, 1}, {4, 1}, {4, 1}, false},
      {"transposed variable, row-major gradient", {1, 10}, {4, 1}, {1, 10}, true},
      {"transposed both", {1, 10}, {1, 10}, {1, 10}, false},
      {"row-major variable, transposed gradient", {4, 1}, {1, 10}, {4, 1}, true},
      {"variable with gaps, row-major gradient", {8, 1}, {4, 1}, {4, 1}, false},
      {"variable with gaps, transposed gradient", {8, 1}, {1, 10}, {4, 1}, true},
      {"expanded gradient", {4, 1}, {0, 1}, {4, 1}, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    const Tensor x = with_strides({10, 4}, one.variable);
    x->requires_grad = true;
    const CallNames calls = accumulate(x, with_strides({10, 4}, one.gradient));
    EXPECT_EQ(!calls.empty(), one.copies);
    EXPECT_EQ(x.grad().strides(), one.result);
  }
}

TEST_F(Accumulation, SizesOfOneDoNotMatterToTheContract) {
  const Tensor x = with_strides({10, 1}, {1, 1});
  EXPECT_TRUE(obeys_layout_contract(with_strides({10, 1}, {1, 7}), x));
}

TEST_F(Accumulation, WithGradModeOnNothingIsTakenOverOrWritten) {
  const Tensor x = leaf({10, 4});
  const Ref<Node> node = accumulator_of(x);
  Gradients incoming{tensor({10, 4})};
  node->apply(incoming);
  const Tensor first = x.grad();
  Gradients more{tensor({10, 4})};
  const size_t begin = mark();
  node->apply(more);
  EXPECT_EQ(calls_since(begin), CallNames{"add.Tensor"});
  EXPECT_NE(x.grad(), first);
}

TEST_F(Accumulation, IgnoresUndefinedGradientsAndFrozenLeaves) {
  const Tensor x = leaf({10, 4});
  EXPECT_EQ(accumulate(x, Tensor()), CallNames{});
  EXPECT_FALSE(x.grad().defined());
  x->requires_grad = false;
  accumulate(x, tensor({10, 4}));
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Accumulation, TakesOverTheRowsOfASparseGradient) {
  const Tensor x = leaf({10, 4});
  Tensor gradient = rows(3);
  const Storage* values = gradient->extra->parts[1]->storage.get();
  EXPECT_EQ(accumulate(x, std::move(gradient)), CallNames{});
  EXPECT_EQ(x.grad()->extra->parts[1]->storage.get(), values);
}

TEST_F(Accumulation, CopiesSparseGradientsThatSomebodyHoldsAndAllCsrOnes) {
  const Tensor x = leaf({10, 4}), held = rows(3);
  EXPECT_EQ(accumulate(x, held), (CallNames{"clone", "clone"}));  // indices, values
  const Tensor y = leaf({10, 4});
  EXPECT_EQ(accumulate(y, compressed_rows(6)), (CallNames{"clone", "clone", "clone"}));
  EXPECT_EQ(y.grad()->layout, Layout::sparse_csr);
}

// The values are those of one number, expanded (the gradient of a sum): 3 * 4 floats and 3 integers are copied, the values first.
TEST_F(Accumulation, CopiesASparseGradientWhoseValuesAreNotContiguous) {
  const Tensor x = leaf({10, 4});
  const Tensor indices = tensor({1, 3}, DType::i64);
  Tensor gradient = make_sparse(*session_, indices, with_strides({3, 4}, {0, 0}), Sizes{10, 4});
  const size_t begin = session_->trace.storages.size();
  EXPECT_EQ(accumulate(x, std::move(gradient)), (CallNames{"clone", "clone"}));
  const auto& storages = session_->trace.storages;
  ASSERT_EQ(storages.size(), begin + 2);
  EXPECT_EQ(storages[begin].bytes.count, 3 * 4 * 4);
  EXPECT_EQ(storages[begin + 1].bytes.count, 3 * 8);
  EXPECT_TRUE(x.grad()->extra->parts[1]->contiguous);
}

TEST_F(Accumulation, SparseGradientsGrow) {
  const Tensor x = leaf({10, 4});
  accumulate(x, rows(3));
  EXPECT_EQ(accumulate(x, rows(2)), CallNames{"add_.Tensor"});
  EXPECT_EQ(x.grad()->extra->parts[1]->sizes, (Sizes{5, 4}));  // rows are joined, not summed
  EXPECT_EQ(accumulate(x, tensor({10, 4}))[0], "add.Tensor");  // from here on it is dense
  EXPECT_FALSE(x.grad().is_sparse());
  EXPECT_EQ(accumulate(x, rows(2))[0], "add_.Tensor");  // dense and sparse: in place
  EXPECT_FALSE(x.grad().is_sparse());
}

TEST_F(Accumulation, CsrGradientsGrow) {
  const Tensor x = leaf({10, 4});
  accumulate(x, compressed_rows(6));
  EXPECT_EQ(accumulate(x, compressed_rows(5)), CallNames{"add_.Tensor"});
  EXPECT_EQ(x.grad()->extra->parts[2]->sizes, Sizes{11});
}

TEST_F(Accumulation, OfAnEmbeddingTable) {
  const Tensor table = leaf({10, 4}), tokens = tensor({2, 3}, DType::i64);
  auto loss = [&] { return call<"embedding">(*session_, table, tokens, -1, false, true); };
  run_backward(loss());
  ASSERT_EQ(table.grad()->layout, Layout::sparse);
  EXPECT_EQ(table.grad()->extra->parts[1]->sizes, (Sizes{6, 4}));
  run_backward(loss());
  EXPECT_EQ(table.grad()->extra->parts[1]->sizes, (Sizes{12, 4}));
}

TEST_F(Accumulation, RefusesSumsThatTheFrameworkDoesNotKnow) {
  const Tensor sparse = rows(3), dense = tensor({10, 4}), other = tensor({10, 5});
  EXPECT_EQ(message_of([&] { add(sparse, compressed_rows(3)); }),
            "aten::add.Tensor: the sum of a COO and a CSR tensor: both must be of one layout");
  EXPECT_EQ(
      message_of([&] { add(sparse, other); }),
      "aten::add.Tensor: a sparse tensor must be of the other one's sizes, got f32[10,4] and f32[10,5]");
  EXPECT_EQ(message_of([&] { call<"add_.Tensor">(*session_, sparse, dense); }),
            "aten::add_.Tensor: a dense tensor cannot be added to a sparse one in place");
}

TEST_F(Accumulation, FlattensTheIndicesOfSeveralSparseDimensions) {
  const Tensor matrix = make_sparse(*session_, tensor({2, 3}, DType::i64), tensor({3}), Sizes{10, 4});
  const Tensor dense = tensor({10, 4});
  const int64_t before = live();
  const size_t begin = mark();
  call<"add_.Tensor">(*session_, dense, matrix);
  EXPECT_EQ(live(), before);
  // One kernel writes a place for each of the three elements, as i64.
  EXPECT_EQ(peak_bytes(*session_, begin), before + 3L * 8);
}

// The leaf owns no accumulator: it lives as long as some graph.
TEST_F(Accumulation, OneAccumulatorPerLeafAsLongAsAGraphHoldsIt) {
  const Tensor x = leaf({4});
  {
    const Tensor a = exp(x), b = neg(x);
    EXPECT_EQ(grad_fn(a)->next[0].node, grad_fn(b)->next[0].node);
  }
  EXPECT_EQ(x->extra->accumulator, nullptr);
}

}  // namespace
}  // namespace metaprof
