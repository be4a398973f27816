#include "validation/recordings/recorded_value.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

using Kind = RecordedValue::Kind;

std::string message_of(const std::string& text) {
  try {
    parse_values(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RecordedValue, Tensors) {
  const auto plain = parse_tensor("f32[8,512]g@12");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->dtype, DType::f32);
  EXPECT_EQ(plain->sizes, (Sizes{8, 512}));
  EXPECT_EQ(plain->strides, (Sizes{512, 1}));
  EXPECT_TRUE(plain->requires_grad);
  EXPECT_FALSE(plain->on_host);
  EXPECT_EQ(plain->storage, 12);

  const auto view = parse_tensor("bf16[64,32]/1,64+2048@h3");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->strides, (Sizes{1, 64}));
  EXPECT_EQ(view->offset, 2048);
  EXPECT_TRUE(view->on_host);
  EXPECT_FALSE(view->requires_grad);

  const auto scalar = parse_tensor("i64[]@h2");
  ASSERT_TRUE(scalar);
  EXPECT_TRUE(scalar->sizes.empty());
}

TEST(RecordedValue, SparseAndForeignLayouts) {
  const auto sparse = parse_tensor("f32[10,3]sparse(i64[1,4]@2 f32[4,3]g@3)");
  ASSERT_TRUE(sparse);
  EXPECT_EQ(sparse->layout, "sparse");
  ASSERT_EQ(sparse->parts.size(), 2u);
  EXPECT_EQ(sparse->parts[1].storage, 3);
  EXPECT_TRUE(sparse->requires_grad);
  EXPECT_EQ(parse_tensor("f32[10,3]SparseCsr")->layout, "SparseCsr");
  EXPECT_EQ(parse_tensor("QInt8[3]@1")->layout, "QInt8");
}

TEST(RecordedValue, EverythingElse) {
  const auto values = parse_values(
      "None True 3 -1 0.5 -inf 1e-05 1.0+2.0j \"a (b) c\" (1 (2 3) None) cuda:0 generator storage@7");
  const Kind kinds[] = {Kind::none,   Kind::boolean,   Kind::integer, Kind::integer, Kind::real,
                        Kind::real,   Kind::real,      Kind::complex, Kind::text,    Kind::list,
                        Kind::device, Kind::generator, Kind::other};
  ASSERT_EQ(values.size(), std::size(kinds));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].kind, kinds[i]) << i;
  EXPECT_EQ(values[3].integer, -1);
  EXPECT_EQ(values[7].imaginary, 2.0);
  EXPECT_EQ(values[8].text, "a (b) c");
  ASSERT_EQ(values[9].list.size(), 3u);
  EXPECT_EQ(values[9].list[1].list[1].integer, 3);
}

TEST(RecordedValue, BadText) {
  EXPECT_EQ(message_of("(1 2"), "a '(' without ')'");
  EXPECT_EQ(message_of("1 2)"), "a ')' without '('");
  EXPECT_EQ(message_of("\"open"), "a '\"' without another");
  EXPECT_EQ(message_of("f32[2,x]@1"), "'x' is not an integer");
  EXPECT_EQ(message_of("f32[2,3]/1@1"), "'f32[2,3]/1@1' has not as many strides as sizes");
  EXPECT_EQ(message_of("f32[2]"), "'f32[2]' is a tensor without @STORAGE");
  EXPECT_EQ(message_of("f32[2]g"), "'f32[2]g' is a tensor without @STORAGE");
  EXPECT_EQ(message_of("f32[2]sparse(i64[1,1]@1)"), "'f32[2]sparse(i64[1,1]@1)' is not a sparse tensor");
  EXPECT_EQ(message_of(std::string(100, '(')), "lists are nested more than 16 deep");
}

}  // namespace
}  // namespace metaprof
