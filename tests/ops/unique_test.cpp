// Slices that occur once, and coordinates of slices: blocks as PyTorch 2.11 asks for them on an emulated H200, where
// device memory reads as zero and no slice is left; with slices, by cuda/Unique.cu.

#include "meta/autograd/engine/engine.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/sparse.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;

class UniqueSlices : public ImageOps {
 protected:
  static constexpr int64_t kElement = 4, kSlice = 3 * kElement;
};

// What Thrust's algorithms take: room to align; 33 states of 16 bytes; 33 of 8 bytes and a count.
constexpr int64_t kNothing = 255, kSum = 255 + 1024, kThinned = 255 + 1024 + 256;

// The order of 100 slices; copies of it and 256 bytes for the merge sort; nothing is left.
TEST_F(UniqueSlices, AreSortedByTheirOrder) {
  const Tensor self = tensor(Sizes{100, 8});
  watch();
  call_all<"unique_dim">(*session_, self, 0);
  EXPECT_EQ(allocated(), (Blocks{800, 255 + 1024 + 256, kThinned}));
}

// 7 slices along the last dimension: they come one below the other first. What differs, where each went (a result);
// where each run begins, one more than slices.
TEST_F(UniqueSlices, CountTheirRuns) {
  const Tensor self = tensor(Sizes{3, 7});
  const WithSizeByData left(*session_, 0);
  watch();
  call_all<"unique_consecutive">(*session_, self, true, true, -1);
  EXPECT_EQ(allocated(), (Blocks{7 * kSlice, 56, 56, 56, kNothing, kSum, 64, kThinned}));
}

// Of 7 slices 5 are left: how often each occurred (5 integers), and they themselves.
TEST_F(UniqueSlices, AreAsManyAsTheProgramSays) {
  const Tensor self = tensor(Sizes{3, 7});
  const Sizes told{3, 5};
  const Scoped<SizesByData> by_data(session_->sizes_by_data, {told, false});
  watch();
  const Results results = call_all<"unique_dim">(*session_, self, 1, true, false, true);
  EXPECT_EQ(allocated(), (Blocks{7 * kSlice, 56, 255 + 256 + 256, 64, kThinned, 40, kNothing, 5 * kSlice}));
  EXPECT_EQ(results[0].sizes(), (Sizes{3, 5}));
  EXPECT_EQ(results[2].sizes(), Sizes{5});
}

// 100,000 slices: 98 parts of a merge sort; 38 tiles of 2,688, 70 states in 1,280 bytes; 313 tiles of 320.
TEST_F(UniqueSlices, ThatAreManyTakeMoreTiles) {
  const Tensor self = tensor(Sizes{100000, 8});
  watch();
  call_all<"unique_dim">(*session_, self, 0, true, true);
  EXPECT_EQ(allocated(), (Blocks{800000, 800511, 800000, 800000, kNothing, 255 + 1536, 3839}));
}

TEST_F(UniqueSlices, OfNoSlicesThereIsNone) {
  const Tensor self = tensor(Sizes{5, 0, 5});
  watch();
  const Results results = call_all<"unique_dim">(*session_, self, 1, true, true, true);
  EXPECT_EQ(results[0].sizes(), (Sizes{5, 0, 5}));
  EXPECT_EQ(results[1].sizes(), Sizes{0});
}

// 3 of 6 rows of 4 are not all 0: 12 elements in two dimensions; their places (24 integers, 192 bytes), of which the first dimension is taken,
// three times each row; the three rows as coordinates; the rows of values, twice.
TEST_F(UniqueSlices, BecomeCoordinatesOfTheFirstDimensions) {
  const Tensor self = tensor(Sizes{6, 4});
  const Sizes told{3, 4};
  const Scoped<SizesByData> by_data(session_->sizes_by_data, {told, false});
  watch();
  const Tensor sparse = call<"_to_sparse.sparse_dim">(*session_, self, 1);
  EXPECT_EQ(sparse_part(sparse, 0).sizes(), (Sizes{1, 3}));
  EXPECT_EQ(sparse_part(sparse, 1).sizes(), (Sizes{3, 4}));
  const Blocks blocks = allocated();
  EXPECT_NE(std::ranges::find(blocks, 192), blocks.end());
  EXPECT_EQ(std::ranges::count(blocks, 4 * kSlice), 2);
}

}  // namespace
}  // namespace metaprof
