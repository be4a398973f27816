#pragma once
// A symbolic integer, as `.pt2` files write it (sympy's srepr):
//
//   Add(FloorDiv(Add(Symbol('s27', positive=True, integer=True), Integer(-1)), Integer(2)), Integer(1))
//
// Text from a file is parsed, never executed.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

struct Expression {
  enum class Kind : uint8_t {
    integer,
    symbol,
    add,
    multiply,
    power,
    floor_divide,
    ceil_divide,
    modulo,            ///< the sign of the divisor, as Python's %
    modular_indexing,  ///< (a // b) % c
    minimum,
    maximum,
    absolute,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    all,
    any,
    negation,
    choice,  ///< Where(condition, a, b)
    identity,
    unknown,  ///< a function that is not known here: `name`
  };
  Kind kind = Kind::integer;
  int64_t number = 0;
  std::string name;  ///< of a symbol or an unknown function
  std::vector<Expression> arguments;
};

using SymbolValues = std::map<std::string, int64_t>;

/// Errors: not an expression, nested too deep, a number beyond 64 bits, wrong count of arguments.
Expression parse_expression(std::string_view srepr);

/// Conditions are 1 or 0. Errors: a symbol without value (named), an unknown function (named), division by
/// zero, overflow.
int64_t evaluate(const Expression& expression, const SymbolValues& symbols);

/// What parse_expression reads: "Add(Symbol('s27'), Integer(-1))".
std::string to_srepr(const Expression& expression);
/// For messages: "(s27 + -1) // 2 + 1".
std::string to_string(const Expression& expression);

/// The names of all symbols in it, each once, in the order of appearance.
std::vector<std::string> symbols_of(const Expression& expression);
/// The name of an unknown function in it; empty: there is none.
std::string unknown_function_of(const Expression& expression);

/// The value of its only symbol without value for which it equals `wanted`, where it is linear in it: 8 for
/// 2*s44 gives s44 = 4. Nothing if there is no such integer, or if this cannot be told.
struct Solution {
  std::string symbol;
  int64_t value = 0;
};
std::optional<Solution> solve(const Expression& expression, const SymbolValues& known, int64_t wanted);

}  // namespace metaprof
