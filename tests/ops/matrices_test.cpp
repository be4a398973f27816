// Matrices: results lie by columns, as the libraries write them; one pointer per matrix of a batch.

#include "core/error.h"
#include "meta/autograd/engine.h"
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
            (Blocks{7 * 36, 7 * 12, 7 * 4, 7 * 8, int64_t{32} << 20}));  // pointers, cuBLAS workspace
}

TEST_F(Matrices, OnlySquareOnesHaveAnInverse) {
  EXPECT_THROW(call_all<"linalg_inv_ex">(*session_, tensor(Sizes{5, 3}), false), Error);
}

}  // namespace
}  // namespace metaprof
