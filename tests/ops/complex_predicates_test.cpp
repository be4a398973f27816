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

// No real copy: the result, and what a reduction over several blocks needs.
TEST_F(ComplexPredicates, NormsReadComplexNumbers) {
  const auto norm = [&](const Tensor& numbers, const Value& dim) {
    watch();
    call<"linalg_vector_norm">(*session_, numbers, 2, dim);
    return allocated();
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(norm(tensor(Sizes{1000000}, DType::c64), Value()), (Bytes{4, 492, 4}));
  EXPECT_EQ(norm(tensor(Sizes{8192, 4096}, DType::c64), Sizes{0}), (Bytes{16384, 138412032, 128}));
  EXPECT_EQ(norm(tensor(Sizes{8192, 4096}, DType::c64), Sizes{1}), Bytes{32768});
  EXPECT_EQ(norm(tensor(Sizes{1000000}, DType::c128), Value()), (Bytes{8, 1960, 4}));
  EXPECT_EQ(norm(tensor(Sizes{8192, 4096}, DType::c128), Sizes{0}), (Bytes{32768, 553648128, 128}));
}

}  // namespace
}  // namespace metaprof
