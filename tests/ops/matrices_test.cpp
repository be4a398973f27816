// Matrices: results lie by columns, as the libraries write them; one pointer per matrix of a batch.

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class Matrices : public ImageOps {};

TEST_F(Matrices, FactorsLieByColumns) {
  const Tensor a = tensor(Sizes{2, 5, 3});
  watch();
  const Results qr = call_all<"linalg_qr">(*session_, a, "reduced");
  const Tensor q = qr[0], r = qr[1];
  EXPECT_EQ(q.sizes(), (Sizes{2, 5, 3}));
  EXPECT_EQ(q.strides(), (Sizes{15, 1, 5}));
  EXPECT_EQ(r.sizes(), (Sizes{2, 3, 3}));
  EXPECT_EQ(r.strides(), (Sizes{9, 1, 3}));
}

TEST_F(Matrices, OneModeOfQrHasNoQ) {
  const Results qr = call_all<"linalg_qr">(*session_, tensor(Sizes{5, 3}), "r");
  EXPECT_EQ(Tensor(qr[0]).sizes(), Sizes{0});
  EXPECT_EQ(Tensor(qr[1]).sizes(), (Sizes{3, 3}));
}

TEST_F(Matrices, SeveralAreHandedOverAsPointers) {
  const Tensor one = tensor(Sizes{3, 3}), many = tensor(Sizes{7, 3, 3});
  watch();
  call_all<"linalg_lu_factor_ex">(*session_, one, true, false);
  EXPECT_EQ(allocated(), (Blocks{36, 12, 4}));  // factors, pivots, info
  watch();
  call_all<"linalg_lu_factor_ex">(*session_, many, true, false);
  EXPECT_EQ(allocated(),
            (Blocks{252, 84, 28, 56, int64_t{32} << 20}));  // seven times these, pointers, cuBLAS workspace
}

// 256 × 256: the order of rows, a range, the inverse order (8 bytes each of 256 rows), the right sides in that order.
// Up to 2.10 the factors are those of Aᵀ, whose solution is put in order afterwards, in a copy.
TEST_F(Matrices, LargeSystemsAreTwoTriangularOnes) {
  constexpr int64_t n = 256, matrix = n * n * 4, places = n * 8, pivots = n * 4;
  const Blocks factors{matrix, 4, matrix, pivots};
  for (const int minor : {10, 11}) {
    session_ = make_session(with_framework(platform_named("h200"), {.major = 2, .minor = minor}));
    const Tensor a = tensor(Sizes{n, n});
    watch();
    call_all<"linalg_inv_ex">(*session_, a, false);
    Blocks blocks = factors;
    for (const int64_t bytes : minor == 10 ? Blocks{places, matrix} : Blocks{places, places, places, matrix})
      blocks.push_back(bytes);
    Blocks got = allocated();
    std::erase(got, int64_t{32} << 20);  // cuBLAS's workspace
    EXPECT_EQ(got, blocks) << minor;
  }
}

// Twice 256 × 256 goes to MAGMA, of which nothing is known here; 16 of 128 × 128 to cuBLAS as a list.
TEST_F(Matrices, LargeOnesAreNotListed) {
  const Tensor two = tensor(Sizes{2, 256, 256}), many = tensor(Sizes{16, 128, 128});
  watch();
  call_all<"linalg_lu_factor_ex">(*session_, two, true, false);
  EXPECT_EQ(allocated().size(), 3u);  // factors, pivots, info
  watch();
  call_all<"linalg_lu_factor_ex">(*session_, many, true, false);
  EXPECT_EQ(allocated()[3], 16 * 8);
}

TEST_F(Matrices, OnlySquareOnesHaveAnInverse) {
  EXPECT_THROW(call_all<"linalg_inv_ex">(*session_, tensor(Sizes{5, 3}), false), Error);
}

}  // namespace
}  // namespace metaprof
