// Layouts of sparse matrices, products of two of them and of blocks, softmax and sums: blocks as PyTorch 2.11 asks for them
// on an emulated H200. What that device finds no elements for (its memory reads as zero) is counted as records say.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "tests/ops/sparse_test.h"

namespace metaprof {
namespace {

class SparseOperators : public SparseOps {};

// A mask; a contiguous copy of the transposed one to look through, twice; where 4 columns begin; values by columns.
TEST_F(SparseOperators, DenseMatricesBecomeColumns) {
  const Tensor dense = tensor(Sizes{6, 4});
  watch();
  EXPECT_EQ(call<"to_sparse_csc">(*session_, dense)->layout, Layout::sparse_csc);
  EXPECT_EQ(allocated(), (Blocks{24, 24, 4, 1, 1023, 5 * 8, 24, 4, 1, 1023, 96}));
}

// A mask, values and the mask block by block, sums over blocks as 64-bit integers and their copy, a mask of 6 blocks.
TEST_F(SparseOperators, DenseMatricesBecomeBlocks) {
  const Tensor dense = tensor(Sizes{6, 4});
  watch();
  const Tensor rows = call<"to_sparse_bsr">(*session_, dense, Sizes{2, 2});
  EXPECT_EQ(allocated(), (Blocks{24, 96, 24, 6 * 8, 24 * 8, 6, 4, 1, 1023, 4 * 8, 4, 1, 1023}));
  EXPECT_EQ(sparse_part(rows, 2).sizes(), (Sizes{0, 2, 2}));
  watch();
  call<"to_sparse_bsc">(*session_, dense, Sizes{2, 2});
  EXPECT_EQ(allocated(), (Blocks{24, 96, 24, 6 * 8, 24 * 8, 6, 6, 4, 1, 1023, 3 * 8, 6, 4, 1, 1023, 96}));
  EXPECT_THROW(call<"to_sparse_bsr">(*session_, dense, Sizes{4, 2}), Error);
}

// 5 offsets as of one long row of 5 · 1 rows; coordinates, which are sorted by columns; where 4 columns begin.
TEST_F(SparseOperators, RowsAreSortedIntoColumns) {
  const Tensor sparse = rows();
  watch();
  const Tensor columns = call<"to_sparse_csc">(*session_, sparse);
  EXPECT_EQ(allocated(), (Blocks{8, 8, 1279, 40, 48, 96, 48, 48, 48, 48, 48, 48, 96, 24, 40, 40, 32}));
  EXPECT_EQ(sparse_part(columns, 0).sizes(), Sizes{5});
  EXPECT_EQ(call<"to_sparse_csr">(*session_, columns)->layout, Layout::sparse_csr);
}

TEST_F(SparseOperators, RowsOfBlocksAreSortedIntoColumnsOfBlocks) {
  const Tensor sparse = blocks();
  watch();
  const Tensor columns = call<"to_sparse_bsc">(*session_, sparse, Sizes{2, 2});
  EXPECT_EQ(allocated(), (Blocks{8, 8, 1279, 24, 32, 48, 24, 24, 24, 24, 24, 24, 48, 48, 24, 24, 16}));
  EXPECT_EQ(sparse_part(columns, 2).sizes(), (Sizes{3, 2, 2}));
  EXPECT_THROW(call<"to_sparse_csr">(*session_, sparse), Error);
  EXPECT_THROW(call<"to_sparse_bsc">(*session_, sparse, Sizes{3, 2}), Error);
}

// 6 elements in blocks of one row and two columns: as many blocks, as if no two elements were in one.
TEST_F(SparseOperators, BlocksAreMadeOnTheHost) {
  const Tensor sparse = rows();
  watch();
  call<"to_sparse_bsr">(*session_, sparse, Sizes{1, 2});
  EXPECT_EQ(allocated(), (Blocks{6 * 2 * 4, 6 * 8, 6 * 8}));
}

// Corners of 3 blocks, places within one, their sum.
TEST_F(SparseOperators, BlocksHaveCoordinates) {
  const Tensor sparse = blocks();
  watch();
  const Tensor made = call<"to_sparse">(*session_, sparse);
  EXPECT_EQ(allocated(), (Blocks{48, 64, 16, 64, 16, 48, 192}));
  EXPECT_EQ(sparse_part(made, 1).sizes(), Sizes{12});
}

// As rows (tests of products), and then put beside each other.
TEST_F(SparseOperators, BlocksBecomeDense) {
  const Tensor sparse = blocks();
  watch();
  EXPECT_EQ(call<"to_dense">(*session_, sparse).sizes(), (Sizes{6, 4}));
  EXPECT_EQ(allocated(), (Blocks{96, 8, 24, 8, 24, 24, 24, 8, 8, 32, 48, 24, 24, 24, 24, 24, 24, 96}));
}

// 32-bit rows and columns of both factors, where the result's rows begin; 6 · 6 / 4 meetings: its columns, values, indices.
TEST_F(SparseOperators, CoordinatesTimesCoordinates) {
  const Tensor a = coordinates(), b = coordinates(true, 4, 5);
  watch();
  const Tensor product = call<"mm">(*session_, a, b);
  EXPECT_EQ(allocated(), (Blocks{24, 24, 24, 20, 24, 24, 24, 9 * 4, 9 * 4, 2 * 9 * 8}));
  EXPECT_EQ(product.sizes(), (Sizes{5, 5}));
}

TEST_F(SparseOperators, GradientsOfTwoFactorsHaveTheirElements) {
  const Tensor a = with_gradient(coordinates()), b = with_gradient(coordinates(true, 4, 5));
  const Tensor product = call<"_sparse_mm">(*session_, a, b);
  backward(*session_, std::vector{product}, std::vector{sparse_alias(product)});
  for (const Tensor& factor : {a, b}) {
    const Tensor gradient(factor->extra->grad);
    ASSERT_TRUE(gradient.is_sparse());
    EXPECT_EQ(gradient.sizes(), factor.sizes());
    EXPECT_EQ(sparse_part(gradient, 1).sizes(), Sizes{6});
  }
}

// Rows without elements; a result that is made empty first; lists of 32 bits, the result's too.
TEST_F(SparseOperators, RowsTimesRows) {
  const Tensor a = rows(), b = rows(4, 5);
  watch();
  const Tensor product = call<"mm">(*session_, a, b);
  EXPECT_EQ(allocated(), (Blocks{48, 8, 48, 24, 24, 24, 20, 24, 9 * 4, 9 * 4}));
  EXPECT_EQ(product->layout, Layout::sparse_csr);
}

// Zeros and the result, what each of 3 blocks meets of 8 columns, their products, coordinates.
TEST_F(SparseOperators, BlocksTimesDense) {
  const Tensor sparse = blocks(), dense = tensor(Sizes{4, 8});
  watch();
  call<"mm">(*session_, sparse, dense);
  EXPECT_EQ(allocated(), (Blocks{192, 192, 3 * 2 * 8 * 4, 3 * 2 * 8 * 4, 48}));
  const Tensor left = tensor(Sizes{7, 6}), columns = call<"to_sparse_bsc">(*session_, sparse, Sizes{2, 2});
  watch();
  call<"mm">(*session_, left, columns);
  EXPECT_EQ(allocated(), (Blocks{112, 112, 3 * 2 * 7 * 4, 3 * 2 * 7 * 4, 48}));
}

// In 16 bits products are of 32 bits: the values, what they meet, the products and their sums.
TEST_F(SparseOperators, BlocksOf16BitsAreMultipliedIn32) {
  const Tensor sparse = blocks(DType::bf16), dense = tensor(Sizes{4, 8}, DType::bf16);
  watch();
  call<"mm">(*session_, sparse, dense);
  EXPECT_EQ(allocated(), (Blocks{96, 96, 96, 3 * 4 * 4, 192, 192, 48, 6 * 8 * 4}));
}

// cuSPARSE: the result by columns, lists of 32 bits.
TEST_F(SparseOperators, BlocksOf64BitsAreMultipliedByCusparse) {
  const Tensor sparse = blocks(DType::f64), dense = tensor(Sizes{4, 8}, DType::f64);
  watch();
  call<"mm">(*session_, sparse, dense);
  EXPECT_EQ(allocated(), (Blocks{384, 384, 384, 16, 12}));
}

TEST_F(SparseOperators, TritonTakesBlocksOfPowersOfTwo) {
  const Tensor sparse =
      make_sparse_compressed(*session_, Layout::sparse_bsr, tensor(Sizes{7}, DType::i64),
                             tensor(Sizes{3}, DType::i64), tensor(Sizes{3, 16, 16}), Sizes{96, 64});
  const Tensor dense = tensor(Sizes{64, 32});
  watch();
  call<"mm">(*session_, sparse, dense);
  EXPECT_EQ(allocated(), (Blocks{96 * 32 * 4, 96 * 32 * 4, 4, 4}));
}

// Values and indices; strides, the elements' pools, which are sorted; the pools' sizes; then, for 5 pools, where they begin
// and their maxima.
TEST_F(SparseOperators, SoftmaxSortsElementsByRow) {
  const Tensor sparse = coordinates();
  watch();
  const Tensor result = call<"_sparse_softmax.int">(*session_, sparse, 1);
  EXPECT_EQ(allocated(), (Blocks{24, 96, 16, 48, 48, 767, 48, 1535, 5 * 8, 1279, 5 * 4}));
  EXPECT_TRUE(result->extra->coalesced);
}

TEST_F(SparseOperators, SoftmaxOfManyElements) {
  const Tensor sparse =
      make_sparse(*session_, tensor(Sizes{2, 100000}, DType::i64), tensor(Sizes{100000}), Sizes{50, 40});
  sparse->extra->coalesced = true;
  watch();
  call<"_sparse_softmax.int">(*session_, sparse, 1);
  EXPECT_EQ(allocated(), (Blocks{400000, 1600000, 16, 800000, 800000, 800511, 800000, 2047, 400, 1279, 200}));
}

TEST_F(SparseOperators, SoftmaxBackwardLooksElementsUp) {
  const Tensor sparse = with_gradient(coordinates());
  const Tensor result = call<"_sparse_log_softmax.int">(*session_, sparse, 1);
  const Tensor gradient = coordinates();
  watch();
  backward(*session_, std::vector{result}, std::vector{gradient});
  const Blocks blocks = allocated();
  EXPECT_EQ(Blocks(blocks.begin(), blocks.begin() + 14),
            (Blocks{24, 96, 16, 48, 16, 48, 48, 16, 48, 48, 767, 48, 1535, 5 * 8}));
}

// Values and columns; then as coordinates whose equal ones are added up.
TEST_F(SparseOperators, SumsOverRowsAreCoordinates) {
  const Tensor sparse = coordinates();
  watch();
  EXPECT_EQ(call<"_sparse_sum.dim">(*session_, sparse, Sizes{0}).sizes(), Sizes{4});
  EXPECT_EQ(Blocks(allocated()).size(), 8u);
  const Blocks blocks = allocated();
  EXPECT_EQ(Blocks(blocks.begin(), blocks.begin() + 7), (Blocks{24, 48, 48, 48, 48, 1023, 1535}));
  watch();
  EXPECT_TRUE(call<"_sparse_sum.dim">(*session_, sparse, Sizes{0, 1}).sizes().empty());
  EXPECT_EQ(allocated(), (Blocks{24, 4}));
}

// Values, flat coordinates of 4 sums and of 6 elements, where each is found, indices.
TEST_F(SparseOperators, GradientsOfSumsAreLookedUp) {
  const Tensor sparse = with_gradient(coordinates());
  const Tensor total = call<"_sparse_sum.dim">(*session_, sparse, Sizes{0});
  watch();
  backward(*session_, std::vector{total}, std::vector{sparse_alias(total)});
  EXPECT_EQ(allocated(), (Blocks{24, 4 * 8, 48, 48, 96}));
}

// A result that is made empty first.
TEST_F(SparseOperators, SampledProductsAreRows) {
  const Tensor self = rows(), a = tensor(Sizes{5, 3}), b = tensor(Sizes{3, 4});
  watch();
  EXPECT_EQ(call<"sparse_sampled_addmm">(*session_, self, a, b)->layout, Layout::sparse_csr);
  EXPECT_EQ(allocated(), (Blocks{8, 48, 48, 24}));
  EXPECT_THROW(call<"sparse_sampled_addmm">(*session_, coordinates(), a, b), Error);
}

TEST_F(SparseOperators, LayoutsHaveTheFrameworksNumbers) {
  const Tensor dense = tensor(Sizes{6, 4});
  EXPECT_EQ(call<"to_sparse">(*session_, dense, 4)->layout, Layout::sparse_csc);
  EXPECT_EQ(call<"to_sparse">(*session_, dense, 5, Sizes{2, 2})->layout, Layout::sparse_bsr);
  EXPECT_THROW(call<"to_sparse">(*session_, dense, 3), Error);
}

// Of coordinates as a product with a matrix of one column; of rows the result.
TEST_F(SparseOperators, SparseMatricesTimesVectors) {
  const Tensor a = coordinates(), b = rows(), vector = tensor(Sizes{4});
  watch();
  EXPECT_EQ(call<"mv">(*session_, a, vector).sizes(), Sizes{5});
  EXPECT_EQ(Blocks(allocated()).front(), 20);
  watch();
  call<"mv">(*session_, b, vector);
  EXPECT_EQ(allocated(), (Blocks{20}));
  EXPECT_THROW(call<"mv">(*session_, blocks(), vector), Error);
}

}  // namespace
}  // namespace metaprof
