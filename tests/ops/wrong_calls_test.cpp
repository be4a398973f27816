// Calls that are wrong in ways that only what runs them sees: an Error each, no matter how large the numbers are.

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class WrongCall : public ::testing::Test {
 protected:
  std::string said(std::string_view op, std::vector<Value> arguments) {
    try {
      invoke(*session_, *session_->registry.find(op), arguments);
    } catch (const Error& error) {
      return error.what();
    }
    return "fine";
  }
  Value tensor(Sizes sizes, DType dtype = DType::f32) { return Value(session_->empty(sizes, dtype)); }

  const std::unique_ptr<Session> session_ = make_session(platform_named("h200"));
};

TEST_F(WrongCall, NeedsDimensions) {
  EXPECT_EQ(said("aten::narrow", {tensor({}), Value(0), Value(0), Value(1)}),
            "dimension 0 is out of range: there are no dimensions");
  EXPECT_EQ(said("aten::unflatten.int", {tensor({}), Value(0), Value{1, 1}}),
            "aten::unflatten.int: needs self.dim > 0, got f32[]");
  EXPECT_EQ(said("aten::triangular_solve", {tensor({3}), tensor({3, 3})}),
            "aten::triangular_solve: needs self.dim >= 2, got f32[3]");
  EXPECT_EQ(said("aten::linalg_solve", {tensor({3, 3}), tensor({})}),
            "dimension -2 is out of range: there are no dimensions");
}

TEST_F(WrongCall, OfGradientsOfPools) {
  const Value image = tensor({2, 3, 8, 8}), two = Value{2, 2}, none = Value{0, 0}, one = Value{1, 1};
  EXPECT_EQ(said("aten::max_pool2d_with_indices_backward",
                 {image, image, two, two, none, one, Value(false), tensor({2, 3}, DType::i64)}),
            "aten::max_pool2d_with_indices_backward: needs indices.dim >= 3, got i64[2,3]");
  EXPECT_EQ(
      said("aten::adaptive_max_pool2d_backward", {image, image, tensor({1, 0, 3}, DType::i64)}),
      "aten::adaptive_max_pool2d_backward: needs indices.sizes == grad_output.sizes, got i64[1,0,3] and "
      "f32[2,3,8,8]");
}

TEST_F(WrongCall, WithoutTensors) {
  EXPECT_EQ(said("aten::index_put", {tensor({2}), Value(Value::Tensors{}), tensor({2})}),
            "aten::index_put: needs at least one index tensor");
  EXPECT_EQ(said("aten::lu_unpack_backward", {Value(), Value(), Value(3), Value(3)}), "fine")
      << "its gradient is no tensor";
}

TEST_F(WrongCall, WithStridesThatNoTensorHas) {
  EXPECT_EQ(said("aten::empty_strided", {Value{2, 8}, Value{8}}),
            "a tensor has as many strides as sizes; got [8] and [2,8]");
  EXPECT_EQ(said("aten::as_strided", {tensor({2, 3}), Value{2, 3}, Value{-3, 1}}),
            "strides must not be negative, got [-3,1]");
}

TEST_F(WrongCall, WithNumbersThatAreTooLarge) {
  EXPECT_EQ(said("aten::expand", {tensor({}), Value{kMost}}),
            "aten::expand: the argument 'size' takes integers up to 2305843009213693952, got "
            "(9223372036854775807)");
  EXPECT_EQ(said("aten::arange", {Value(1e300)}), "aten::arange: 1e+300 elements are too many");
  EXPECT_EQ(said("aten::combinations", {tensor({3}), Value(kMost)}),
            "aten::combinations: needs r in 0 to 64, got 9223372036854775807");
  EXPECT_NE(said("aten::pixel_shuffle", {tensor({1, 4, 2, 2}), Value(kMost)}).find("overflow"),
            std::string::npos);
  EXPECT_EQ(said("aten::slice.Tensor", {tensor({3}), Value(0), Value(-kMost), Value(kMost)}), "fine");
  EXPECT_EQ(said("aten::sort", {call<"expand">(*session_, tensor({}), Sizes{int64_t{1} << 32})}),
            "aten::sort: 4294967296 elements cannot be sorted; at most 2147483647 can");
}

// Calls that a generator of programs has found, each of which ended the process.
TEST_F(WrongCall, OfAGenerator) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Value rows = tensor({2, 3}), number = tensor({});
  const Value image = tensor({2, 3, 6, 6});
  const auto tensors = [](std::initializer_list<Value> values) {
    Value::Tensors list;
    for (const Value& value : values) list.push_back(value.tensor());
    return Value(list);
  };
  const struct {
    std::string_view op;
    std::vector<Value> arguments;
    std::string_view message;
  } calls[] = {
      {"aten::_pad_circular",
       {tensor({2, 4, 8, 8}), Value{1, 1}},
       "aten::_pad_circular: expects 2 pairs for f32[2,4,8,8], got [1,1]"},
      {"aten::cat",
       {tensors({number, rows}), Value(0)},
       "aten::cat: needs tensors.dim > 0, got (f32[] f32[2,3])"},
      {"aten::glu", {number}, "aten::glu: needs self.dim > 0, got f32[]"},
      {"bitsandbytes::MatMul8bitLt_backward",
       {number, tensor({5, 4}, DType::i8), tensor({5})},
       "bitsandbytes::MatMul8bitLt_backward: needs grad.dim > 0, got f32[]"},
      {"bitsandbytes::MatMul8bitLt",
       {tensor({6, 0}), tensor({6, 0}, DType::i8), tensor({6})},
       "bitsandbytes::MatMul8bitLt: expects rows as long as those of the weight, of at least one element"},
      {"aten::narrow_copy",
       {rows, Value(0), Value(0), Value(-1)},
       "aten::narrow_copy: needs length >= 0, got -1"},
      {"aten::_segment_reduce_backward",
       {number, number, number, Value("max"), tensor({1}, DType::i64), Value(), Value(0), Value()},
       "aten::_segment_reduce_backward: needs data.dim > 0, got f32[]"},
      {"aten::_nnpack_spatial_convolution",
       {image, image, Value(), Value{0, 1}, Value{0, 8}},
       "aten::_nnpack_spatial_convolution: needs stride.each > 0, got (0 8)"},
      {"aten::conv2d.padding",
       {image, tensor({3, 1, 2, 1, 2, 1, 2}), Value(), Value{1, 1}, Value("same")},
       "aten::_convolution_mode: expects 1 or 5 numbers of stride, got 2"},
      {"aten::fft_irfftn",
       {rows, Value{3, 2, 7}},
       "aten::fft_irfftn: needs a size per dimension; got 3 sizes and 2 dimensions"},
      {"aten::triu_indices", {Value(-4), Value(4)}, "aten::triu_indices: needs row >= 0, got -4"},
      {"aten::ctc_loss.Tensor",
       {tensor({6, 2, 8}), tensor({2, 3}, DType::i64), tensor({3}, DType::i64), tensor({3}, DType::i64)},
       "aten::ctc_loss.Tensor: expects a length for each sequence of f32[6,2,8], got 3"},
      {"aten::resize_", {rows, Value{0, -1}}, "aten::resize_: needs size.each >= 0, got (0 -1)"},
      {"aten::_padded_dense_to_jagged_forward",
       {number, tensors({tensor({3}, DType::i64)}), Value(7)},
       "aten::_padded_dense_to_jagged_forward: needs dense.dim >= 2, got f32[]"},
      {"aten::to.dtype",
       {rows, Value(-infinity)},
       "aten::to.dtype: the argument 'dtype' takes an integer, got -inf"},
      {"aten::istft",
       {tensor({9, 6}, DType::c64), Value(16), Value(kMost / 4)},
       "overflow: 2305843009213693951 * 5 exceeds 64 bits"},
  };
  for (const auto& call : calls) EXPECT_EQ(said(call.op, call.arguments), call.message) << call.op;
}

// A mean of no classes is NaN: the sum is filled (LossNLL.cpp).
TEST_F(WrongCall, CrossEntropyWithoutClasses) {
  EXPECT_EQ(said("aten::cross_entropy_loss", {tensor({4, 0}), tensor({4, 0})}), "fine");
}

TEST(SizeOf, HasNoDimensionOfAScalar) {
  EXPECT_EQ(size_of(Sizes{2, 3}, -1), 3);
  EXPECT_THROW(size_of(Sizes{2, 3}, 2), Error);
  EXPECT_THROW(size_of(Sizes{}, 0), Error) << "wrap_dim counts 0-D as 1-D";
}

TEST(Schema, PlacesOfArguments) {
  const Schema schema = parse_schema("f(Tensor self, int n) -> Tensor");
  EXPECT_EQ(schema.place_of("n", 5), 1);
  EXPECT_EQ(schema.place_of("", 0), 0);
  EXPECT_EQ(schema.place_of("", 2), -1);
  EXPECT_EQ(schema.place_of("m", 0), -1);
}

}  // namespace
}  // namespace metaprof
