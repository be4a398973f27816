#include "program/expression.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

int64_t value_of(std::string_view srepr, const SymbolValues& symbols = {}) {
  return evaluate(parse_expression(srepr), symbols);
}

std::string error_of(std::string_view srepr, const SymbolValues& symbols = {}) {
  try {
    return "no error, but " + std::to_string(value_of(srepr, symbols));
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_error(std::string_view srepr, std::string_view words, const SymbolValues& symbols = {}) {
  EXPECT_NE(error_of(srepr, symbols).find(words), std::string::npos) << error_of(srepr, symbols);
}

TEST(Expression, EvaluatesWhatExportsHold) {
  const SymbolValues symbols = {{"s17", 4}, {"s27", 10}, {"u0", 8}};
  EXPECT_EQ(value_of("Symbol('s27', positive=True, integer=True)", symbols), 10);
  EXPECT_EQ(value_of("Symbol('s27', integer=True)", symbols), 10) << "assumptions vary";
  EXPECT_EQ(value_of("Symbol('s27')", symbols), 10);
  EXPECT_EQ(value_of("Mul(Symbol('s17', integer=True), Symbol('s27', integer=True))", symbols), 4 * 10);
  EXPECT_EQ(
      value_of("Add(FloorDiv(Add(Symbol('s27', positive=True, integer=True), Integer(-1)), Integer(2)), "
               "Integer(1))",
               symbols),
      (10 - 1) / 2 + 1);
  EXPECT_EQ(value_of("Mul(Integer(6), Max(Integer(1), Add(Symbol('s27'), Integer(-2))))", symbols), 6 * 8);
  EXPECT_EQ(value_of("Min(Integer(6), Mul(Integer(6), Symbol('s27')))", symbols), 6);
  EXPECT_EQ(value_of("GreaterThan(Symbol('u0', integer=True), Integer(0))", symbols), 1)
      << "greater or equal";
  EXPECT_EQ(value_of("LessThan(Symbol('u0', integer=True), Integer(7))", symbols), 0) << "less or equal";
}

TEST(Expression, KnowsTheFunctionsOfTheSerializer) {
  EXPECT_EQ(value_of("Add(Integer(1), Integer(2), Integer(3))"), 6);
  EXPECT_EQ(value_of("Pow(Integer(3), Integer(4))"), 81);
  EXPECT_EQ(value_of("PowByNatural(Integer(-1), Integer(9223372036854775807))"), -1);
  EXPECT_EQ(value_of("CeilDiv(Integer(7), Integer(2))"), 4);
  EXPECT_EQ(value_of("CleanDiv(Integer(8), Integer(2))"), 4);
  EXPECT_EQ(value_of("ModularIndexing(Integer(29), Integer(4), Integer(5))"), 29 / 4 % 5);
  EXPECT_EQ(value_of("Abs(Integer(-3))"), 3);
  EXPECT_EQ(value_of("Where(Equality(Integer(1), Integer(1)), Integer(5), Integer(6))"), 5);
  EXPECT_EQ(value_of("And(true, Not(false), Unequality(Integer(1), Integer(2)))"), 1);
  EXPECT_EQ(value_of("Or(StrictLessThan(Integer(1), Integer(1)), StrictGreaterThan(Integer(1), Integer(1)))"),
            0);
  EXPECT_EQ(value_of("Identity(Integer(12))"), 12);
}

TEST(Expression, DividesAsPythonDoes) {
  EXPECT_EQ(value_of("FloorDiv(Integer(-7), Integer(2))"), -4);
  EXPECT_EQ(value_of("FloorDiv(Integer(7), Integer(-2))"), -4);
  EXPECT_EQ(value_of("FloorDiv(Integer(-8), Integer(2))"), -4);
  EXPECT_EQ(value_of("PythonMod(Integer(-7), Integer(3))"), 2);
  EXPECT_EQ(value_of("Mod(Integer(7), Integer(-3))"), -2);
}

TEST(Expression, RefusesWhatIsNoExpression) {
  expect_error("", "malformed expression");
  expect_error("Add(Integer(1)", "malformed expression");
  expect_error("Add(Integer(1),)", "malformed expression");
  expect_error("Integer(1))", "expected the end");
  expect_error("Integer(1.5)", "malformed expression");
  expect_error("Symbol(s77)", "expected a quoted name");
  expect_error("Symbol('s77", "expected a closing quote");
  expect_error("Symbol('s77', integer)", "malformed expression");
  expect_error("__import__('os').system('touch owned')", "malformed expression");
  expect_error("FloorDiv(Integer(1))", "wrong number of arguments");
  expect_error("Integer(9223372036854775808)", "out of the range");
}

TEST(Expression, RefusesTooMuch) {
  std::string deep, wide = "Add(Integer(1)";
  for (int i = 0; i < 10'000; ++i) deep += "Add(";
  for (int i = 0; i < 10'001; ++i) wide += ", Integer(1)";
  expect_error(deep, "too deep");
  expect_error(wide + ")", "too long");
}

TEST(Expression, NamesWhatCannotBeEvaluated) {
  expect_error("Symbol('s99')", "symbol s99 has no value", {{"s1", 1}});
  expect_error("Sinh(Integer(1))", "function Sinh");
  expect_error("FloorDiv(Symbol('s1'), Integer(0))", "division by zero in the expression s1 // 0",
               {{"s1", 1}});
  expect_error("Mod(Integer(1), Integer(0))", "division by zero");
  expect_error("Pow(Integer(2), Integer(-1))", "negative power");
}

TEST(Expression, NeverWrapsAround) {
  const std::string max = "Integer(9223372036854775807)", min = "Integer(-9223372036854775808)";
  expect_error("Add(" + max + ", Integer(1))", "overflow");
  expect_error("Mul(" + max + ", Integer(2))", "overflow");
  expect_error("Pow(Integer(2), Integer(63))", "overflow");
  expect_error("FloorDiv(" + min + ", Integer(-1))", "overflow");
  expect_error("Abs(" + min + ")", "overflow");
  EXPECT_EQ(value_of("Mod(" + min + ", Integer(-1))"), 0);
}

TEST(Expression, PrintsItselfAsOneWouldWriteIt) {
  const auto text = [](std::string_view srepr) { return to_string(parse_expression(srepr)); };
  EXPECT_EQ(text("Mul(Integer(2), Symbol('s44', integer=True))"), "2*s44");
  EXPECT_EQ(text("Add(FloorDiv(Symbol('s27'), Integer(2)), Integer(1))"), "(s27 // 2) + 1");
  EXPECT_EQ(text("Max(Integer(1), Symbol('u0'))"), "Max(1, u0)");
  EXPECT_EQ(text("Sinh(Symbol('s1'))"), "Sinh(s1)");
}

TEST(Expression, ListsItsSymbolsAndItsUnknownFunction) {
  const auto expression = parse_expression("Add(Symbol('b'), Mul(Symbol('a'), Sinh(Symbol('b'))))");
  EXPECT_EQ(symbols_of(expression), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(unknown_function_of(expression), "Sinh");
  EXPECT_EQ(unknown_function_of(parse_expression("Add(Symbol('b'))")), "");
}

std::optional<Solution> solved(std::string_view srepr, int64_t wanted, const SymbolValues& known = {}) {
  return solve(parse_expression(srepr), known, wanted);
}

TEST(Expression, SolvesForOneSymbolWhereItIsLinear) {
  ASSERT_TRUE(solved("Mul(Integer(2), Symbol('s44'))", 8));
  EXPECT_EQ(solved("Mul(Integer(2), Symbol('s44'))", 8)->symbol, "s44");
  EXPECT_EQ(solved("Mul(Integer(2), Symbol('s44'))", 8)->value, 4);
  EXPECT_EQ(solved("Add(Mul(Integer(3), Symbol('s')), Integer(-1))", 11)->value, 4) << "3*4 - 1";
  EXPECT_EQ(solved("Mul(Symbol('a'), Symbol('b'))", 12, {{"a", 3}})->value, 4);
}

TEST(Expression, DoesNotGuessWhereItCannotSolve) {
  EXPECT_FALSE(solved("Mul(Integer(2), Symbol('s'))", 7)) << "no integer";
  EXPECT_FALSE(solved("Mul(Symbol('a'), Symbol('b'))", 12)) << "two unknowns";
  EXPECT_FALSE(solved("Mul(Symbol('s'), Symbol('s'))", 9)) << "not linear";
  EXPECT_FALSE(solved("FloorDiv(Symbol('s'), Integer(2))", 3)) << "6 or 7";
  EXPECT_FALSE(solved("Sinh(Symbol('s'))", 3));
  EXPECT_FALSE(solved("Integer(3)", 3)) << "nothing to solve for";
}

}  // namespace
}  // namespace metaprof
