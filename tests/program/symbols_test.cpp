#include "program/symbols.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

// An input x of sizes [2*s, 3] with strides [3, 1], and a sub-graph with a tensor of sizes [s]. Exported for
// s = 4, range 2 to 64.
Program example() {
  Program program;
  program.origin = "x.pt2";
  const auto add = [&](std::string_view srepr, int64_t hint) {
    program.expressions.push_back({std::make_shared<Expression>(parse_expression(srepr)), hint});
    return static_cast<int32_t>(program.expressions.size()) - 1;
  };
  const int32_t doubled = add("Mul(Integer(2), Symbol('s'))", 8), single = add("Symbol('s')", 4);
  program.symbols["s"] = 4;
  program.ranges["s"] = {2, 64};

  ValueFacts x;
  x.name = "x";
  x.tensor.emplace();
  x.tensor->sizes = {8, 3};
  x.tensor->strides = {3, 1};
  x.tensor->size_expressions = {doubled, -1};
  program.graph.values = {x};
  program.graph.inputs = {0};
  program.inputs.emplace_back();
  program.inputs.back().value = 0;
  program.inputs.back().name = "x";

  auto body = std::make_shared<Graph>();
  ValueFacts inner;
  inner.name = "inner";
  inner.tensor.emplace();
  inner.tensor->sizes = {4};
  inner.tensor->strides = {1};
  inner.tensor->size_expressions = {single};
  body->values = {inner};
  GraphNode node;
  node.operands.emplace_back();
  node.operands.back().kind = Operand::Kind::graph;
  node.operands.back().graph = body;
  program.graph.nodes.push_back(node);
  return program;
}

const Sizes& sizes_of_x(const Program& program) { return program.graph.values[0].tensor->sizes; }

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Symbols, NewValuesReachEverySize) {
  Program program = example();
  const Program before = program;
  bind_symbols(program, {{"s", 10}});
  EXPECT_EQ(sizes_of_x(program), (Sizes{2 * 10, 3}));
  EXPECT_EQ(program.graph.nodes[0].operands[0].graph->values[0].tensor->sizes, (Sizes{10}));
  EXPECT_EQ(program.symbols.at("s"), 10);
  EXPECT_EQ(before.graph.nodes[0].operands[0].graph->values[0].tensor->sizes, (Sizes{4}))
      << "a copy of the program shares sub-graphs and must not change";
}

TEST(Symbols, ValuesOutsideTheExportedRangeAreRefused) {
  Program program = example();
  EXPECT_EQ(error_of([&] {
              bind_symbols(program, {{"s", 65}});
            }),
            "x.pt2: s = 65 is outside the range of the export, 2 to 64");
  EXPECT_EQ(error_of([&] {
              bind_symbols(program, {{"t", 1}});
            }),
            "x.pt2: no symbol t in the program (it has: s)");
  EXPECT_EQ(sizes_of_x(program), (Sizes{8, 3}));
}

TEST(Symbols, AFailureLeavesTheProgramAsItWas) {
  Program program = example();
  program.ranges.clear();
  const std::string error = error_of([&] { bind_symbols(program, {{"s", -1}}); });
  EXPECT_EQ(error, "x.pt2: x: negative size in [-2,3]");
  EXPECT_EQ(sizes_of_x(program), (Sizes{8, 3}));
  EXPECT_EQ(program.symbols.at("s"), 4);
}

TEST(Symbols, ArgumentsOfUnknownFunctionsCannotChange) {
  Program program = example();
  program.expressions.push_back({std::make_shared<Expression>(parse_expression("Sinh(Symbol('s'))")), 7});
  EXPECT_NE(error_of([&] { bind_symbols(program, {{"s", 5}}); }).find("argument of Sinh"), std::string::npos);
  bind_symbols(program, {{"s", 4}});  // no change
}

TEST(Symbols, FollowFromTheSizesOfAnInput) {
  const Program program = example();
  EXPECT_EQ(symbols_for(program, "x", Sizes{20, 3}), (SymbolValues{{"s", 10}})) << "20 = 2*s";
  EXPECT_EQ(error_of([&] {
              symbols_for(program, "x", Sizes{21, 3});
            }),
            "x.pt2: dimension 0 of x is 2*s and cannot be 21");
  EXPECT_EQ(error_of([&] {
              symbols_for(program, "x", Sizes{20, 4});
            }),
            "x.pt2: dimension 1 of x is fixed at 3 in the file, got 4: export it with dynamic_shapes");
  EXPECT_EQ(error_of([&] { symbols_for(program, "x", Sizes{20}); }),
            "x.pt2: x has 2 dimensions, [8,3]; got [20]");
  EXPECT_EQ(error_of([&] { symbols_for(program, "y", Sizes{20}); }),
            "x.pt2: the program has no tensor input y");
}

TEST(Symbols, SizesAreChecked) {
  const auto check = [](Sizes sizes, Sizes strides, int64_t offset = 0) {
    ValueFacts value;
    value.name = "x";
    value.tensor.emplace();
    value.tensor->sizes = std::move(sizes);
    value.tensor->strides = std::move(strides);
    value.tensor->offset = offset;
    return error_of([&] { check_sizes(value); });
  };
  const int64_t big = int64_t{1} << 58;
  EXPECT_EQ(check({big, 4}, {4, 1}), "no error") << "2^58 * 4 elements of 4 bytes: 2^62 bytes";
  EXPECT_NE(check({big, 8}, {8, 1}).find("overflow"), std::string::npos) << "2^63 bytes";
  EXPECT_NE(check({2, 2}, {1LL << 62, 1}).find("overflow"), std::string::npos) << "the last element's offset";
  EXPECT_EQ(check({2, -1}, {1, 1}), "x: negative size in [2,-1]");
  EXPECT_EQ(check({2}, {-1}), "x: negative stride in [-1]");
  EXPECT_EQ(check({2}, {1}, -1), "x: negative storage offset -1");
  EXPECT_EQ(check({0, 5}, {INT64_MAX, 1}), "no error") << "no elements, no reach";
}

TEST(Program, TheLossIsTheFirstFloatingScalarOutput) {
  Program program = example();
  EXPECT_EQ(program.loss(), kNoValue) << "no outputs";
  ValueFacts loss;
  loss.name = "loss";
  loss.tensor.emplace();
  ValueFacts count = loss;
  count.tensor->dtype = DType::i64;
  program.graph.values.push_back(count);  // 1
  program.graph.values.push_back(loss);   // 2
  for (const ValueId value : {0, 1, 2}) {
    ProgramOutput output;
    output.operand.kind = Operand::Kind::value;
    output.operand.value = value;
    program.outputs.push_back(output);
  }
  EXPECT_EQ(program.loss(), 2) << "x has dimensions, the count is no floating number";
  program.outputs[0].kind = ProgramOutput::Kind::loss;
  EXPECT_EQ(program.loss(), 0) << "the file marks it";
}

}  // namespace
}  // namespace metaprof
