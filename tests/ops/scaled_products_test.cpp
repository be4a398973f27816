// Products in floats of 8 bits. Blocks and refusals are those of PyTorch 2.11 on emulated devices.

#include "core/error.h"
#include "tests/ops/image_ops_test.h"

namespace metaprof {
namespace {

using Blocks = std::vector<int64_t>;
constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr DType kE4M3 = DType::f8_e4m3fn;

class ScaledProducts : public ImageOps {
 protected:
  void on(const char* device) { session_ = make_session(platform_named(device)); }
  /// What lies by columns.
  Tensor columns(int64_t rows, int64_t count, DType dtype = kE4M3) {
    return session_->empty_strided(Sizes{rows, count}, Sizes{1, rows}, dtype, session_->device);
  }
  Tensor scale(SizesView sizes = Sizes{}) { return tensor(sizes); }
  Tensor product(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
                 DType out = DType::bf16, const Value& bias = {}) {
    return call<"_scaled_mm">(*session_, a, b, scale_a, scale_b, bias, Value(), out);
  }
  /// Scales of rows and columns.
  Blocks by_rows(int64_t m, int64_t k, int64_t n) {
    const Tensor a = tensor(Sizes{m, k}, kE4M3), b = columns(k, n), of_a = scale(Sizes{m, 1}),
                 of_b = scale(Sizes{1, n});
    watch();
    (void)product(a, b, of_a, of_b);
    return allocated();
  }
  template <class Run>
  std::string refusal(Run run) {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ScaledProducts, TakeCublasLtsWorkspaces) {
  const Tensor a = tensor(Sizes{300, 512}, kE4M3), b = columns(512, 1024), one = scale();
  watch();
  const Tensor out = product(a, b, one, one);
  EXPECT_EQ(out.dtype(), DType::bf16);
  EXPECT_EQ(allocated(), (Blocks{300 * 1024 * 2, 32 * kMiB, kMiB}));  // kept from then on
  EXPECT_EQ(counted("aten::_scaled_mm"), 2 * 300 * 512 * 1024);
  watch();
  EXPECT_EQ(product(a, b, one, one, kE4M3).dtype(), kE4M3);
  EXPECT_EQ(allocated(), (Blocks{300 * 1024}));
  EXPECT_EQ(by_rows(300, 512, 1024), (Blocks{300 * 1024 * 2}));
}

TEST_F(ScaledProducts, HaveScalesOfBlocks) {
  const Tensor a = tensor(Sizes{256, 256}, kE4M3), b = columns(256, 256);
  const Tensor of_rows = columns(256, 2, DType::f32), of_columns = scale(Sizes{2, 256}),
               of_squares = columns(2, 2, DType::f32);
  EXPECT_EQ(product(a, b, of_rows, of_columns).sizes(), (Sizes{256, 256}));
  EXPECT_EQ(product(a, b, of_rows, of_squares).sizes(), (Sizes{256, 256}));
}

// Where cuBLASLt does not scale rows: a padded list of scales, or partial sums of at most two blocks for each of the
// 128 multiprocessors, of 128 x 128 elements.
TEST_F(ScaledProducts, ScaleRowsByCutlassOnOtherDevices) {
  on("b200");
  EXPECT_EQ(by_rows(32, 64, 48), (Blocks{32 * 48 * 2, 256 * 4}));
  EXPECT_EQ(by_rows(300, 512, 1024), (Blocks{300 * 1024 * 2})) << "computed the other way round";
  EXPECT_EQ(by_rows(8192, 64, 64), (Blocks{8192 * 64 * 2, 256 * 4})) << "64 columns take the place of rows";
  on("rtx5090");
  EXPECT_EQ(by_rows(300, 512, 1024), (Blocks{300 * 1024 * 2, 512 * 4}));
  on("rtx4090");
  EXPECT_EQ(by_rows(1024, 4096, 512), (Blocks{1024 * 512 * 2, 256 * 128 * 128 * 4}));
  EXPECT_EQ(by_rows(16, 256, 64), (Blocks{16 * 64 * 2, 2 * 16 * 64 * 2 * 4})) << "two pieces of 128";
  EXPECT_TRUE(session_->trace.storages.back().estimated);
}

TEST_F(ScaledProducts, RefuseWhatTheFrameworkRefuses) {
  const Tensor a = tensor(Sizes{256, 256}, kE4M3), b = columns(256, 256), one = scale();
  const auto refused = [&](const Tensor& x, const Tensor& y, DType out = DType::bf16,
                           const Value& bias = {}) {
    return refusal([&] { (void)product(x, y, one, one, out, bias); });
  };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused(tensor(Sizes{256, 40}, kE4M3), columns(40, 256)), "divisible by 16");
  expect(refused(a, columns(256, 40)), "divisible by 16");
  expect(refused(a, tensor(Sizes{256, 128}, kE4M3)), "row-major and column-major");
  expect(refused(tensor(Sizes{256, 256}, DType::f8_e5m2), columns(256, 256, DType::f8_e5m2)),
         "two float8_e5m2 matrices");
  expect(refused(tensor(Sizes{256, 256}, DType::bf16), columns(256, 256, DType::bf16)),
         "invalid scaling configuration");
  expect(refused(a, b, DType::f32, tensor(Sizes{256}, DType::bf16)), "bias is not supported");
  expect(refused(a, b, DType::bf16, tensor(Sizes{256}, DType::f16)), "bias of float16");
  expect(refusal([&] { (void)product(a, b, scale(Sizes{3, 1}), one); }), "invalid scaling configuration");
}

TEST_F(ScaledProducts, NeedADeviceThatHasThem) {
  on("a100");
  const std::string message = refusal([&] {
    const Tensor one = scale();
    (void)product(tensor(Sizes{256, 256}, kE4M3), columns(256, 256), one, one);
  });
  EXPECT_NE(message.find("compute capability >= 9.0 or 8.9"), std::string::npos) << message;
}

// The second interface: recipes 0 (a number) and 1 (rows).
TEST_F(ScaledProducts, AreNamedBySecondInterface) {
  const Tensor a = tensor(Sizes{256, 256}, kE4M3), b = columns(256, 256);
  const auto run = [&](const Tensor& x, const Tensor& y, Value::Tensors scales_a, Value::Tensors scales_b,
                       const Sizes& recipe) {
    return call<"_scaled_mm_v2">(*session_, x, y, Value(std::move(scales_a)), recipe, Sizes(recipe.size(), 1),
                                 Value(std::move(scales_b)), recipe, Sizes(recipe.size(), 1), Value(),
                                 DType::bf16);
  };
  EXPECT_EQ(run(a, b, {scale()}, {scale()}, {0}).dtype(), DType::bf16);
  (void)run(a, b, {scale(Sizes{256, 1})}, {scale(Sizes{1, 256})}, {1});
  EXPECT_NE(refusal([&] { (void)run(a, b, {scale()}, {scale()}, {1}); }), "") << "not a scale for each row";
}

// 4 groups: 3 addresses, 3 strides and 12 bytes of sizes each; 4 descriptors of 128 bytes for each multiprocessor.
TEST_F(ScaledProducts, OfGroupsTellTheKernelWhereTheyAre) {
  const auto run = [&](int64_t count) {
    const Tensor rows = tensor(Sizes{512, 256}, DType::bf16), ends = tensor(Sizes{count}, DType::i32);
    const Tensor matrices = session_->empty_strided(Sizes{count, 256, 128}, Sizes{256 * 128, 1, 256},
                                                    DType::bf16, session_->device);
    watch();
    (void)call<"_grouped_mm">(*session_, rows, matrices, ends);
    return allocated();
  };
  EXPECT_EQ(run(4), (Blocks{512 * 128 * 2, 4 * (24 + 24 + 12), 132 * 4 * 128}));
  EXPECT_EQ(run(7), (Blocks{512 * 128 * 2, 8 * 24 + 7 * (24 + 12), 132 * 4 * 128})) << "addresses in pairs";
  on("b200");
  EXPECT_EQ(run(4), (Blocks{512 * 128 * 2, 240, 148 * 42 * 128}));
  on("a100");
  EXPECT_EQ(run(4), (Blocks{512 * 128 * 2, 4160 * 2 * kKiB})) << "products one by one, cuBLAS's workspace";
}

// Scales have addresses, too, and all five kinds descriptors.
TEST_F(ScaledProducts, OfGroupsHaveScalesOfRows) {
  const Tensor rows = tensor(Sizes{512, 256}, kE4M3), ends = tensor(Sizes{4}, DType::i32);
  const Tensor matrices =
      session_->empty_strided(Sizes{4, 256, 128}, Sizes{256 * 128, 1, 256}, kE4M3, session_->device);
  const Tensor of_rows = scale(Sizes{512}), of_columns = scale(Sizes{4, 128});
  watch();
  EXPECT_EQ((call<"_scaled_grouped_mm">(*session_, rows, matrices, of_rows, of_columns, ends).dtype()),
            DType::bf16);
  EXPECT_EQ(allocated(), (Blocks{512 * 128 * 2, 4 * (40 + 24 + 12), 132 * 5 * 128}));
  EXPECT_NE(refusal([&] {
              (void)call<"_scaled_grouped_mm">(*session_, rows, matrices, of_columns, of_columns, ends);
            }).find("the scale"),
            std::string::npos);
}

TEST_F(ScaledProducts, NothingIsPromotedToEightBits) {
  EXPECT_NE(refusal([&] {
              (void)(tensor(Sizes{4}, kE4M3) + tensor(Sizes{4}));
            }).find("promotion for float8 types is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace metaprof
