// What records say that calls need: the language, and the check of each kind of requirement.

#include "meta/op/takes.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "meta/session/check_arguments.h"
#include "meta/session/limits.h"

namespace metaprof {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "fine";
}

// Checks a call of an operator with this signature.
class Takes : public ::testing::Test {
 protected:
  std::string said(const char* schema, const char* takes, std::vector<Value> arguments) {
    const Op record{.schema = schema,
                    .summary = {},
                    .meta = [](Call&) {},
                    .derivatives = not_differentiable,
                    .flops = free_of_flops,
                    .examples = {},
                    .facts = {.takes = takes}};
    Operator op(record);
    op.schema = parse_schema(schema);
    op.name = op.schema.full_name();
    return error_of([&] {
      ParsedTakes parsed = parse_takes(op.schema, takes);
      op.takes = {parsed.kinds, std::make_shared<const Requirements>(parsed.beyond_schema)};
      check_arguments(*session_, op, arguments);
    });
  }
  Value tensor(Sizes sizes) { return Value(session_->empty(sizes, DType::f32)); }

  const std::unique_ptr<Session> session_ = make_session(platform_named("h200"));
};

TEST_F(Takes, ComparesNumbers) {
  const char* schema = "f(Tensor self, int n, float p=0.5) -> Tensor";
  EXPECT_EQ(said(schema, "n > 0, p in 0 to 1", {tensor({2}), Value(1), Value(0.5)}), "fine");
  EXPECT_EQ(said(schema, "n > 0", {tensor({2}), Value(0), Value(0.5)}), "aten::f: needs n > 0, got 0");
  EXPECT_EQ(said(schema, "n != 0", {tensor({2}), Value(0), Value(0.5)}), "aten::f: needs n != 0, got 0");
  EXPECT_EQ(said(schema, "n < 3", {tensor({2}), Value(3), Value(0.5)}), "aten::f: needs n < 3, got 3");
  EXPECT_EQ(said(schema, "n <= 3", {tensor({2}), Value(4), Value(0.5)}), "aten::f: needs n <= 3, got 4");
  EXPECT_EQ(said(schema, "p in 0 to 1", {tensor({2}), Value(1), Value(1.5)}),
            "aten::f: needs p in 0 to 1, got 1.5");
  EXPECT_EQ(said(schema, "p in 0 to 1", {tensor({2}), Value(1), Value(-0.5)}),
            "aten::f: needs p in 0 to 1, got -0.5");
}

TEST_F(Takes, ComparesTensors) {
  const char* schema = "f(Tensor self, Tensor? other, int dim) -> Tensor";
  EXPECT_EQ(said(schema, "self.dim == other.dim", {tensor({2}), Value(), Value(0)}), "fine")
      << "what is not given is not compared";
  EXPECT_EQ(said(schema, "self.dim == other.dim", {tensor({2}), tensor({2, 3}), Value(0)}),
            "aten::f: needs self.dim == other.dim, got f32[2] and f32[2,3]");
  EXPECT_EQ(said(schema, "self.numel > 0", {tensor({2, 0}), Value(), Value(0)}),
            "aten::f: needs self.numel > 0, got f32[2,0]");
  EXPECT_EQ(said(schema, "self.size(dim) == 3", {tensor({2, 3}), Value(), Value(-1)}), "fine");
  EXPECT_EQ(said(schema, "self.size(dim) == 3", {tensor({2, 3}), Value(), Value(0)}),
            "aten::f: needs self.size(dim) == 3, got f32[2,3]");
  EXPECT_EQ(said(schema, "self.size(-1) == 2", {tensor({2, 3}), Value(), Value(0)}),
            "aten::f: needs self.size(-1) == 2, got f32[2,3]");
  EXPECT_EQ(said(schema, "self.sizes == other.sizes", {tensor({2, 3}), tensor({2, 3}), Value(0)}), "fine");
  EXPECT_EQ(said(schema, "self.sizes == other.sizes", {tensor({2, 3}), Value(), Value(0)}), "fine");
  EXPECT_EQ(said(schema, "self.sizes == other.sizes", {tensor({2, 3}), tensor({3, 2}), Value(0)}),
            "aten::f: needs self.sizes == other.sizes, got f32[2,3] and f32[3,2]");
  EXPECT_EQ(said(schema, "dim in self", {tensor({}), Value(), Value(-1)}), "fine");
  EXPECT_EQ(said(schema, "dim in self", {tensor({2}), Value(), Value(1)}),
            "aten::f: needs dim in self, got 1 and f32[2]");
  EXPECT_EQ(said(schema, "other given", {tensor({2}), Value(), Value(1)}),
            "aten::f: needs other given, got None");
  EXPECT_EQ(said(schema, "self sparse", {tensor({2}), Value(), Value(1)}),
            "aten::f: needs self sparse, got f32[2]");
  EXPECT_EQ(said(schema, "self strided", {tensor({2}), Value(), Value(1)}), "fine");
}

TEST_F(Takes, ComparesLists) {
  const char* schema = "f(Tensor[] tensors, int[] stride, Scalar[] numbers=[]) -> Tensor";
  const Value two(Value::Tensors{tensor({2, 3}).tensor(), tensor({2}).tensor()});
  EXPECT_EQ(said(schema, "tensors.length > 1, stride.each > 0", {two, Value{1, 2}, Value(Value::Reals{1})}),
            "fine");
  EXPECT_EQ(said(schema, "tensors.dim == 2", {two, Value{1}, Value(Value::Reals{1})}),
            "aten::f: needs tensors.dim == 2, got (f32[2,3] f32[2])");
  EXPECT_EQ(said(schema, "stride.each > 0", {two, Value{1, 0}, Value(Value::Reals{1})}),
            "aten::f: needs stride.each > 0, got (1 0)");
  EXPECT_EQ(said(schema, "lists of one length", {two, Value{1, 2}, Value(Value::Reals{1, 2})}), "fine");
  EXPECT_EQ(said(schema, "lists of one length", {two, Value{1, 2}, Value(Value::Reals{1})}),
            "aten::f: needs lists of one length, not empty; got 2 and 2 and 1");
}

TEST_F(Takes, BoundsResults) {
  const char* schema = "f(Tensor self, int n) -> Tensor[]";
  EXPECT_EQ(said(schema, "results == n", {tensor({2}), Value(kMostResults)}), "fine");
  EXPECT_EQ(said(schema, "results == n", {tensor({2}), Value(kMostResults + 1)}),
            "aten::f: makes at most 1048576 tensors; results == n, got 1048577");
  EXPECT_EQ(said(schema, "results == self.numel / n", {tensor({4194304}), Value(4)}), "fine");
  EXPECT_EQ(said(schema, "results == self.numel / n", {tensor({4194304}), Value(3)}),
            "aten::f: makes at most 1048576 tensors; results == self.numel / n, got f32[4194304]");
}

TEST_F(Takes, Conditions) {
  const char* schema = "f(Tensor? self, bool train) -> Tensor";
  EXPECT_EQ(said(schema, "self given if train", {Value(), Value(false)}), "fine");
  EXPECT_EQ(said(schema, "self given if train", {Value(), Value(true)}),
            "aten::f: needs self given if train, got None");
  EXPECT_EQ(said(schema, "self given unless train", {Value(), Value(true)}), "fine");
  EXPECT_EQ(said(schema, "self given unless train", {Value(), Value(false)}),
            "aten::f: needs self given unless train, got None");
}

TEST_F(Takes, KindsOfTheSchema) {
  EXPECT_EQ(said("f(Tensor self) -> Tensor", "", {Value()}),
            "aten::f: no tensor is known for the argument 'self'");
  EXPECT_EQ(said("f(Tensor self) -> Tensor", "self may be undefined", {Value()}), "fine");
  EXPECT_EQ(said("f(Tensor? self) -> Tensor", "", {Value()}), "fine");
  EXPECT_EQ(said("f(bool[2] mask) -> Tensor", "", {Value(Value::Booleans{1})}),
            "aten::f: needs mask.length == 2, got (True)");
  const Value long_list{Sizes(size_t{500}, int64_t{1})};
  EXPECT_LT(said("f(str mode) -> Tensor", "", {long_list}).size(), 200u);
}

// A record that contradicts itself is a mistake of this program, which every test of all records finds.
TEST_F(Takes, ATextThatIsNotUnderstood) {
  const char* schema = "f(Tensor self, int n) -> Tensor";
  for (const char* text : {"m > 0", "self.depth > 0", "n", "n > ", "n ~ 3", "n > 0 n > 1", "self.size(",
                           "n > 0 if ", "self.sizes > self.sizes", "self.sizes == n"})
    EXPECT_TRUE(said(schema, text, {tensor({2}), Value(1)}).starts_with("record of aten::f: what it takes, "))
        << text;
}

}  // namespace
}  // namespace metaprof
