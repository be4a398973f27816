// Least squares, reflectors and reductions of parts: blocks as PyTorch 2.11 asks for them on an emulated H200, where
// cuSOLVER takes nothing.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

class LeastSquares : public ImageOps {
 protected:
  // Without cuBLAS's own workspace of 32 MiB, which each thread takes once.
  std::vector<int64_t> small_blocks() const {
    std::vector<int64_t> blocks = allocated();
    std::erase(blocks, int64_t{32} << 20);
    return blocks;
  }
  std::vector<int64_t> of_forward(const Sizes& a, const Sizes& b) {
    const Tensor self = tensor(a), right = tensor(b);
    watch();
    call_all<"linalg_lstsq">(*session_, self, right);
    return small_blocks();
  }
};

using Bytes = std::vector<int64_t>;

// An info; what the library writes by columns (8 × 2), a copy of the matrix (8 × 6), 6 factors, infos of both
// factorisation and product, two pointers; sums of squares of 2 rows; the check.
TEST_F(LeastSquares, MoreRowsThanColumnsLeaveResiduals) {
  EXPECT_EQ(of_forward({8, 6}, {8, 2}), (Bytes{4, 64, 192, 24, 4, 4, 8, 8, 8, 1, 1}));
}

// The reflectors are those of the transposed matrix.
TEST_F(LeastSquares, MoreColumnsThanRowsAreTransposed) {
  EXPECT_EQ(of_forward({6, 8}, {6, 2}), (Bytes{4, 64, 192, 24, 192, 4, 8, 8, 4, 1, 1}));
}

TEST_F(LeastSquares, SeveralMatricesAreOneCall) {
  EXPECT_EQ(of_forward({5, 8, 6}, {5, 8, 2}), (Bytes{20, 320, 960, 960, 40, 40, 40, 1}));
  EXPECT_EQ(of_forward({5, 6, 6}, {5, 6}), (Bytes{20, 120, 720, 720, 40, 40, 1}));  // a vector each
}

// The pseudo-inverse, its gradient, and the gradient of the right-hand side, which is stolen; the other is copied.
TEST_F(LeastSquares, GradientsGoThroughThePseudoInverse) {
  const Tensor a = with_gradient(tensor(Sizes{8, 6})), b = with_gradient(tensor(Sizes{8, 2}));
  const Tensor solution = call_all<"linalg_lstsq">(*session_, a, b)[0];
  const Tensor gradient = tensor(Sizes{6, 2});
  watch();
  backward(*session_, std::vector{solution}, std::vector{gradient});
  EXPECT_EQ(small_blocks(),
            (Bytes{8,   8,   192, 144, 24,  4,   192, 256, 1,   1,   8,   8,   4,   24,  6,   24, 144,
                   192, 192, 144, 192, 256, 192, 192, 192, 256, 192, 192, 192, 192, 192, 192, 64, 192}));
}

TEST_F(LeastSquares, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(of_forward({8, 6}, {7, 2}), Error);
  EXPECT_THROW(
      call_all<"linalg_lstsq">(*session_, tensor(Sizes{8, 6}), tensor(Sizes{8, 2}), Value(), "gelsd"), Error);
  EXPECT_THROW(call<"ormqr">(*session_, tensor(Sizes{5, 3}), tensor(Sizes{3}), tensor(Sizes{4, 2})), Error);
  EXPECT_THROW(call<"segment_reduce">(*session_, tensor(Sizes{5}), "max"), Error);
  EXPECT_THROW(call_all<"histogram.bin_ct">(*session_, tensor(Sizes{5}), 3), Error);  // on the host only
}

// Zeros and lengths joined and added up, 5 of 8 bytes; a byte for CUB.
TEST_F(LeastSquares, PartsOfALineAreReducedByCub) {
  const Tensor data = tensor(Sizes{5}), lengths = tensor(Sizes{4}, DType::i64);
  watch();
  call<"segment_reduce">(*session_, data, "mean", lengths, Value(), Value(), 0, true);
  EXPECT_EQ(allocated(), (Bytes{16, 8, 40, 1279, 1}));
}

// Norms: sizes, sums of columns, the largest and which; how often each of 3 matrices is squared, in four steps; powers of two;
// the matrices divided by these, 25 numbers, 5 powers of each matrix, a 1 and identities, 5 combinations.
TEST_F(LeastSquares, ExponentialsOfSeveralMatricesArePolynomials) {
  const Tensor a = with_gradient(tensor(Sizes{3, 6, 6}));
  watch();
  const Tensor result = call<"matrix_exp">(*session_, a);
  const Bytes blocks = allocated();
  ASSERT_GT(blocks.size(), 17u);
  EXPECT_EQ(Bytes(blocks.begin(), blocks.begin() + 17),
            (Bytes{432, 72, 12, 24, 12, 12, 12, 12, 12, 12, 8, 432, 100, 2160, 4, 432, 2160}));
  // The gradient is a part of the exponential of matrices of twice the size, and is copied.
  const Tensor gradient = tensor(Sizes{3, 6, 6});
  watch();
  backward(*session_, std::vector{result}, std::vector{gradient});
  EXPECT_EQ(allocated().front(), 4 * 432);
  EXPECT_EQ(allocated().back(), 432);
}

}  // namespace
}  // namespace metaprof
