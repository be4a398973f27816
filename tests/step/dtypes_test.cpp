#include "program/source/dtypes.h"

#include <gtest/gtest.h>

#include "meta/ops/all.h"

namespace metaprof {
namespace {

// Builds a graph of fp32 values, one call after the other.
class Builder {
 public:
  Builder() { program_.module_stacks = {{}, {{.path = "norm", .type = "Norm", .key = "norm"}}}; }

  ValueId input(ProgramInput::Kind kind, DType dtype = DType::f32) {
    const ValueId value = add_value(dtype);
    program_.inputs.push_back({.kind = kind, .value = value, .name = "input", .constant = {}});
    program_.graph.inputs.push_back(value);
    return value;
  }

  // A call inside the module "norm", or outside of it; `dtype`: with such an argument of fp32.
  ValueId call(const std::string& op, const std::vector<ValueId>& tensors, const std::string& code,
               bool inside, bool dtype = false) {
    GraphNode node;
    node.op = op;
    for (ValueId tensor : tensors) {
      Operand operand;
      operand.kind = Operand::Kind::value;
      operand.value = tensor;
      node.operands.push_back(operand);
    }
    if (dtype) {
      Operand operand;
      operand.name = "dtype";
      operand.constant = Value(DType::f32);
      node.operands.push_back(operand);
    }
    const ValueId made = add_value(DType::f32);
    node.targets.push_back({.list = false, .values = {made}});
    node.modules = inside ? 1 : 0;
    node.source = static_cast<int32_t>(program_.source_stacks.size());
    const int line = 1 + node.source;
    program_.source_stacks.push_back({{.file = "m.py", .function = "forward", .code = code, .line = line}});
    program_.graph.nodes.push_back(node);
    return made;
  }

  std::vector<ValueId> sources() const {
    Graph graph = program_.graph;
    find_named_dtypes(program_, graph);
    find_dtype_sources(program_, graph, FrameFinder(program_).frames_of(graph));
    std::vector<ValueId> sources;
    for (const GraphNode& node : graph.nodes) sources.push_back(node.dtype_of);
    return sources;
  }
  std::vector<char> products() const {
    Graph graph = program_.graph;
    find_named_dtypes(program_, graph);
    find_products_without_autocast(graph, standard_registry());
    std::vector<char> products;
    for (const GraphNode& node : graph.nodes) products.push_back(node.without_autocast);
    return products;
  }

 private:
  ValueId add_value(DType dtype) {
    ValueFacts facts;
    facts.tensor = TensorFacts{.dtype = dtype,
                               .sizes = {2},
                               .strides = {1},
                               .device = {},
                               .size_expressions = {},
                               .stride_expressions = {}};
    program_.graph.values.push_back(facts);
    return static_cast<ValueId>(program_.graph.values.size()) - 1;
  }

  Program program_;
};

constexpr auto kUser = ProgramInput::Kind::user;
constexpr auto kParameter = ProgramInput::Kind::parameter;

// A norm of transformers: `input_dtype = x.dtype; x = x.to(torch.float32); …; return w * x.to(input_dtype)`.
TEST(DtypeSources, AConversionGoesBackToTheTypeOfTheModulesArgument) {
  Builder b;
  const ValueId weight = b.input(kParameter), x = b.input(kUser);
  const ValueId product = b.call("aten::linear", {x, weight}, "y = self.linear(x)", false);
  const ValueId wide = b.call("aten::to.dtype", {product}, "x = x.to(torch.float32)", true, true);
  const ValueId scaled = b.call("aten::mul.Tensor", {weight, wide}, "x = self.scale * x", true);
  b.call("aten::to.dtype", {scaled}, "return self.weight * x.to(input_dtype)", true, true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, kNoValue, kNoValue, product}));
}

// `logits = F.linear(x, w); top = top.to(logits.dtype)`: the variable is asked, not the module's argument.
TEST(DtypeSources, AVariableOfTheFunctionIsAsked) {
  Builder b;
  const ValueId x = b.input(kUser), weight = b.input(kParameter);
  const ValueId logits = b.call("aten::linear", {x, weight}, "logits = F.linear(x, w)", true);
  const ValueId top = b.call("aten::softmax.int", {logits}, "top = torch.softmax(logits, -1)", true);
  b.call("aten::to.dtype", {top}, "top = top.to(logits.dtype)", true, true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, kNoValue, logits}));
}

TEST(DtypeSources, AVariableThatNothingBoundIsTheModulesArgument) {
  Builder b;
  const ValueId x = b.input(kUser), weight = b.input(kParameter);
  const ValueId outer = b.call("aten::linear", {x, weight}, "y = self.linear(x)", false);
  const ValueId top = b.call("aten::relu", {outer}, "top = torch.relu(x)", true);
  b.call("aten::to.dtype", {top}, "return top.to(x.dtype)", true, true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, kNoValue, outer}));
}

// `noise = torch.empty(shape, dtype=input.dtype).bernoulli_(p); return input * noise`.
TEST(DtypeSources, AFactoryFollowsWhatItsResultIsCombinedWith) {
  Builder b;
  const ValueId x = b.input(kUser);
  const ValueId before = b.call("aten::relu", {x}, "x = self.relu(x)", false);
  const ValueId noise = b.call("aten::empty.memory_format", {}, "return drop(x, self.p)", true, true);
  const ValueId filled = b.call("aten::bernoulli_.float", {noise}, "return drop(x, self.p)", true);
  b.call("aten::mul.Tensor", {before, filled}, "return drop(x, self.p)", true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, before, kNoValue, kNoValue}));
}

// `mask = keep + torch.rand(shape, dtype=x.dtype); return x.div(keep) * mask`.
TEST(DtypeSources, AFactoryFollowsWhatItsPartnerWasMadeOf) {
  Builder b;
  const ValueId x = b.input(kUser);
  const ValueId noise =
      b.call("aten::rand", {}, "mask = keep + torch.rand(shape, dtype=x.dtype)", true, true);
  const ValueId mask =
      b.call("aten::add.Tensor", {noise}, "mask = keep + torch.rand(shape, dtype=x.dtype)", true);
  const ValueId scaled = b.call("aten::div.Tensor", {x}, "return x.div(keep) * mask", true);
  b.call("aten::mul.Tensor", {scaled, mask}, "return x.div(keep) * mask", true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{x, kNoValue, kNoValue, kNoValue}));
}

TEST(DtypeSources, WhatIsMadeLaterCannotHaveBeenAsked) {
  Builder b;
  const ValueId x = b.input(kUser), weight = b.input(kParameter);
  const ValueId zeros = b.call("aten::zeros", {}, "bias = torch.zeros(n)", true, true);
  const ValueId later = b.call("aten::linear", {x, weight}, "x = self.linear(x)", true);
  b.call("aten::add.Tensor", {later, zeros}, "return x + bias", true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, kNoValue, kNoValue}));
}

TEST(DtypeSources, NumbersThatBecomeFloatingStayAsWritten) {
  Builder b;
  const ValueId x = b.input(kUser), positions = b.input(kUser, DType::i64);
  b.call("aten::relu", {x}, "x = self.relu(x)", true);
  b.call("aten::to.dtype", {positions}, "bias = self.compute_bias(", true, true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue, kNoValue}));
}

TEST(DtypeSources, NamedTypes) {
  for (const char* code : {"x = x.float()", "x = x.to(torch.float32)", "x = x.to(torch.float)"}) {
    Builder b;
    b.call("aten::to.dtype", {b.input(kUser)}, code, true, true);
    EXPECT_EQ(b.sources(), (std::vector<ValueId>{kNoValue})) << code;
  }
  Builder b;
  const ValueId x = b.input(kUser);
  b.call("aten::to.dtype", {x}, "x = x.to(torch.float16 if half else other)", true, true);
  EXPECT_EQ(b.sources(), (std::vector<ValueId>{x}));
}

// Rotary frequencies of transformers: `with autocast(enabled=False): freqs = (a.float() @ b.float())`, where
// `a` is fp32 already and `b` an integer.
TEST(ProductsOfFloat32, StandWhereAutocastIsOff) {
  Builder b;
  const ValueId a = b.input(kUser), positions = b.input(kUser, DType::i64);
  const std::string code = "freqs = (a.float() @ positions.float()).transpose(1, 2)";
  const ValueId left = b.call("aten::to.dtype", {a}, code, true, true);
  const ValueId right = b.call("aten::to.dtype", {positions}, code, true, true);
  const ValueId product = b.call("aten::matmul", {left, right}, code, true);
  b.call("aten::cos", {product}, "cos = freqs.cos()", true);
  EXPECT_EQ(b.products(), (std::vector<char>{0, 0, 1, 0}));
}

TEST(ProductsOfFloat32, ConvertedInALineOfItsOwnAndSeenThroughViews) {
  Builder b;
  const ValueId a = b.input(kUser), positions = b.input(kUser, DType::i64);
  const ValueId wide = b.call("aten::to.dtype", {a}, "a = a.to(torch.float)", true, true);
  const ValueId left = b.call("aten::unsqueeze", {wide}, "a = a[None]", true);
  const ValueId right = b.call("aten::to.dtype", {positions}, "b = positions.float()", true, true);
  b.call("aten::matmul", {left, right}, "freqs = a @ b", true);
  EXPECT_EQ(b.products(), (std::vector<char>{0, 0, 0, 1}));
}

TEST(ProductsOfFloat32, BothFactorsMustBeConvertedForIt) {
  Builder b;
  const ValueId a = b.input(kUser), other = b.input(kUser);
  const ValueId left = b.call("aten::to.dtype", {a}, "a = a.float()", true, true);
  b.call("aten::matmul", {left, other}, "y = a @ b", true);
  const ValueId computed = b.call("aten::relu", {left}, "a = a.float().relu()", true);
  b.call("aten::matmul", {computed, left}, "y = a @ b", true);
  EXPECT_EQ(b.products(), (std::vector<char>{0, 0, 0, 0})) << "what is computed from it may be in 16 bits";
}

}  // namespace
}  // namespace metaprof
