// Products of sparse and dense matrices on a GPU, and what sparse tensors are made from: blocks as PyTorch 2.11 asks for
// them on an emulated H200. The matrix has 5 rows, 4 columns and 6 elements, the dense one 8 columns.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "tests/ops/sparse_test.h"

namespace metaprof {
namespace {

class SparseProducts : public SparseOps {};

TEST_F(SparseProducts, CoordinatesBecomeRowsOf32Bits) {
  const Tensor sparse = coordinates(), dense = tensor(Sizes{4, 8});
  watch();
  const Tensor product = call<"mm">(*session_, sparse, dense);
  // Zeros and the result, where each row begins, rows, columns, the result by columns.
  EXPECT_EQ(allocated(), (Blocks{5 * 8 * 4, 5 * 8 * 4, 6 * 4, 6 * 4, 6 * 4, 5 * 8 * 4}));
  EXPECT_EQ(product.sizes(), (Sizes{5, 8}));
}

TEST_F(SparseProducts, WhatCusparseTakesIsNotKnown) {
  call<"mm">(*session_, rows(), tensor(Sizes{4, 8}));
  EXPECT_TRUE(std::ranges::any_of(session_->trace.storages, [](const StorageRecord& storage) {
    return storage.estimated && storage.bytes.count == 0;
  }));
}

TEST_F(SparseProducts, RowsAreTakenAsTheyAre) {
  const Tensor sparse = rows(), dense = tensor(Sizes{4, 8});
  watch();
  call<"mm">(*session_, sparse, dense);
  EXPECT_EQ(allocated(), (Blocks{5 * 8 * 4, 5 * 8 * 4}));  // zeros, the result
}

// The transposed factor has values and indices of its own, and needs a row in the meantime; then the product as above,
// 4 × 8, as if no two coordinates were equal.
TEST_F(SparseProducts, GradientOfTheDenseFactorIsAProductWithTheTransposedOne) {
  const Tensor dense = with_gradient(tensor(Sizes{4, 8}));
  const Tensor product = call<"_sparse_mm">(*session_, coordinates(), dense);
  const Tensor gradient = tensor(Sizes{5, 8});
  watch();
  backward(*session_, std::vector{product}, std::vector{gradient});
  const Blocks blocks = allocated();
  ASSERT_GE(blocks.size(), 5u);
  EXPECT_EQ(Blocks(blocks.begin(), blocks.begin() + 5), (Blocks{6 * 4, 12 * 8, 6 * 8, 4 * 8 * 4, 4 * 8 * 4}));
  EXPECT_EQ(Tensor(dense->extra->grad).sizes(), (Sizes{4, 8}));
}

// A dense product of 5 × 4, of which the elements of the sparse factor are taken: one, the places' values, indices, values.
TEST_F(SparseProducts, GradientOfTheSparseFactorIsSparse) {
  const Tensor sparse = with_gradient(coordinates());
  const Tensor product = call<"_sparse_mm">(*session_, sparse, tensor(Sizes{4, 8}));
  backward(*session_, std::vector{product}, std::vector{tensor(Sizes{5, 8})});
  const Tensor gradient(sparse->extra->grad);
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_EQ(sparse_part(gradient, 1).sizes(), Sizes{6});
}

TEST_F(SparseProducts, DenseTensorsFromSparseOnes) {
  const Tensor sparse = coordinates();
  watch();
  EXPECT_EQ(call<"to_dense">(*session_, sparse).sizes(), (Sizes{5, 4}));
  EXPECT_EQ(allocated(), (Blocks{80}));
}

TEST_F(SparseProducts, RowsShareTheColumnsOfCoordinates) {
  const Tensor sparse = coordinates();
  watch();
  const Tensor compressed = call<"to_sparse_csr">(*session_, sparse);
  EXPECT_EQ(allocated(), (Blocks{6 * 8}));  // where each of 5 rows begins
  EXPECT_EQ(compressed->layout, Layout::sparse_csr);
  EXPECT_EQ(sparse_part(compressed, 2)->storage, sparse_part(sparse, 1)->storage);
}

TEST_F(SparseProducts, OtherPairsAreRefused) {
  const Tensor sparse = coordinates();
  EXPECT_THROW(call<"mm">(*session_, sparse, tensor(Sizes{5, 8})), Error);
  EXPECT_THROW(call<"mm">(*session_, sparse, coordinates()), Error);  // 5 × 4 and 5 × 4
  EXPECT_THROW(call<"mm">(*session_, t(rows()), sparse), Error);      // columns and coordinates
  EXPECT_THROW(call<"mm">(*session_, tensor(Sizes{8, 6}), blocks()), Error);
  EXPECT_THROW(call<"mm">(*session_, t(blocks()), tensor(Sizes{6, 8})), Error);
}

// None, as nothing says how many are not 0: a count, what its sum needs, and what finding them needs.
TEST_F(SparseProducts, DenseTensorsBecomeCoordinatesOfWhatIsNot0) {
  const Tensor dense = with_gradient(tensor(Sizes{5, 4}));
  watch();
  const Tensor sparse = call<"to_sparse">(*session_, dense);
  EXPECT_EQ(allocated(), (Blocks{4, 1, 1023}));
  EXPECT_EQ(sparse_part(sparse, 0).sizes(), (Sizes{2, 0}));
  watch();
  backward(*session_, std::vector{sparse}, std::vector{sparse});
  EXPECT_EQ(allocated(), (Blocks{80}));  // a dense gradient
}

// A mask of bytes; where the 5 rows begin; twice what finding elements needs.
TEST_F(SparseProducts, DenseTensorsBecomeCompressedRows) {
  const Tensor dense = tensor(Sizes{5, 4});
  watch();
  EXPECT_EQ(call<"to_sparse_csr">(*session_, dense)->layout, Layout::sparse_csr);
  EXPECT_EQ(allocated(), (Blocks{20, 4, 1, 1023, 48, 4, 1, 1023}));
}

// Of 5 rows and 6 elements, as a batch of one; lists of one, of 5, of 6 (where rows begin) and of 6 elements.
TEST_F(SparseProducts, CompressedRowsBecomeDense) {
  const Tensor sparse = rows();
  watch();
  call<"to_dense">(*session_, sparse);
  EXPECT_EQ(allocated(), (Blocks{80, 8, 48, 8, 40, 40, 40, 8, 8, 48, 96, 48, 48, 48, 48, 48, 48}));
}

// A copy of the factor, and a result that is made empty first; then it is copied for `.grad`.
TEST_F(SparseProducts, GradientOfCompressedRowsHasTheirElements) {
  const Tensor factor = with_gradient(rows());
  const Tensor product = call<"_sparse_mm">(*session_, factor, tensor(Sizes{4, 8}));
  const Tensor gradient = tensor(Sizes{5, 8});
  watch();
  backward(*session_, std::vector{product}, std::vector{gradient});
  EXPECT_EQ(allocated(), (Blocks{24, 48, 48, 8, 48, 48, 24, 24, 48, 48}));
}

}  // namespace
}  // namespace metaprof
