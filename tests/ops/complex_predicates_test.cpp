// Predicates of complex numbers: blocks as PyTorch 2.11 asks for them on an emulated H200.

#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

class ComplexPredicates : public ImageOps {};

// Of each part its sizes (4 bytes each of 6,400 numbers), three masks; the second part's mask goes into the first's.
TEST_F(ComplexPredicates, BothPartsAreLookedAtOneAfterTheOther) {
  const Tensor numbers = tensor(Sizes{100, 64}, DType::c64);
  watch();
  call<"isfinite">(*session_, numbers);
  EXPECT_EQ(allocated(), (std::vector<int64_t>{25600, 6400, 6400, 6400, 25600, 6400, 6400, 6400}));
  watch();
  call<"isinf">(*session_, numbers);
  EXPECT_EQ(allocated(), (std::vector<int64_t>{25600, 6400, 25600, 6400}));
  watch();
  call<"isnan">(*session_, numbers);
  EXPECT_EQ(allocated(), std::vector<int64_t>{6400});
}

}  // namespace
}  // namespace metaprof
