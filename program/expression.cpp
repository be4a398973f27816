#include "program/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"

namespace metaprof {
namespace {

using Kind = Expression::Kind;

// What an exported program may contain: sympy's own functions and those of torch.utils._sympy.functions
// (PyTorch 2.11). `infix` is for messages.
struct Function {
  std::string_view name;
  Kind kind;
  int least, most;  // arguments; -1: any number
  std::string_view infix;
};
constexpr Function kFunctions[] = {
    {"Add", Kind::add, 1, -1, " + "},
    {"Mul", Kind::multiply, 1, -1, "*"},
    {"Pow", Kind::power, 2, 2, "**"},
    {"PowByNatural", Kind::power, 2, 2, "**"},
    {"FloorDiv", Kind::floor_divide, 2, 2, " // "},
    {"CleanDiv", Kind::floor_divide, 2, 2, " // "},
    {"CeilDiv", Kind::ceil_divide, 2, 2, ""},
    {"Mod", Kind::modulo, 2, 2, " % "},
    {"PythonMod", Kind::modulo, 2, 2, " % "},
    {"ModularIndexing", Kind::modular_indexing, 3, 3, ""},
    {"Min", Kind::minimum, 1, -1, ""},
    {"Max", Kind::maximum, 1, -1, ""},
    {"Abs", Kind::absolute, 1, 1, ""},
    {"Equality", Kind::equal, 2, 2, " == "},
    {"Unequality", Kind::unequal, 2, 2, " != "},
    {"StrictLessThan", Kind::less, 2, 2, " < "},
    {"LessThan", Kind::less_equal, 2, 2, " <= "},
    {"StrictGreaterThan", Kind::greater, 2, 2, " > "},
    {"GreaterThan", Kind::greater_equal, 2, 2, " >= "},
    {"And", Kind::all, 0, -1, " & "},
    {"Or", Kind::any, 0, -1, " | "},
    {"Not", Kind::negation, 1, 1, ""},
    {"Where", Kind::choice, 3, 3, ""},
    {"Identity", Kind::identity, 1, 1, ""},
};

// Real expressions are less than ten deep and have some tens of terms.
constexpr int kMaxDepth = 100, kMaxTerms = 10'000;

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression whole() {
    Expression expression = parse(0);
    skip_blanks();
    if (at_ != text_.size()) reject("the end");
    return expression;
  }

 private:
  Expression parse(int depth) {
    if (depth > kMaxDepth) fail("the expression is nested too deep, more than {} calls", kMaxDepth);
    if (++terms_ > kMaxTerms) fail("the expression is too long, more than {} terms", kMaxTerms);
    const std::string_view name = word();
    Expression expression;
    if (name == "true" || name == "false") {
      expression.number = name == "true";
      return expression;
    }
    take('(');
    if (name == "Integer") {
      expression.number = integer();
      take(')');
      return expression;
    }
    if (name == "Symbol") {
      expression.kind = Kind::symbol;
      expression.name = quoted();
      skip_assumptions();
      return expression;
    }
    arguments(expression, depth);
    name_function(expression, name);
    return expression;
  }

  void arguments(Expression& expression, int depth) {
    if (peek() == ')') {
      ++at_;
      return;
    }
    for (;;) {
      expression.arguments.push_back(parse(depth + 1));
      if (peek() == ')') break;
      take(',');
    }
    ++at_;
  }

  void name_function(Expression& expression, std::string_view name) {
    for (const Function& function : kFunctions) {
      if (function.name != name) continue;
      const int count = static_cast<int>(expression.arguments.size());
      if (count < function.least || (function.most >= 0 && count > function.most))
        fail("wrong number of arguments in the expression: {} of {}", count, name);
      expression.kind = function.kind;
      return;
    }
    expression.kind = Kind::unknown;
    expression.name = name;
  }

  // "positive=True, integer=True)": their order and number vary, and they change no value.
  void skip_assumptions() {
    while (peek() == ',') {
      take(',');
      word();
      take('=');
      word();
    }
    take(')');
  }

  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  void take(char wanted) {
    if (peek() != wanted) reject(fmt::format("'{}'", wanted));
    ++at_;
  }
  std::string_view word() {
    skip_blanks();
    const size_t begin = at_;
    const auto belongs = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) reject("a name");
    return text_.substr(begin, at_ - begin);
  }
  int64_t integer() {
    skip_blanks();
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (code == std::errc::result_out_of_range)
      fail("a number in the expression is out of the range of 64 bits");
    if (code != std::errc()) reject("an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return number;
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') reject("a quoted name");
    const size_t begin = ++at_, end = text_.find(quote, begin);
    if (end == std::string_view::npos) reject("a closing quote");
    at_ = end + 1;
    return std::string(text_.substr(begin, end - begin));
  }

  [[noreturn]] void reject(std::string_view expected) const {
    constexpr size_t kShown = 120;
    fail("malformed expression '{}{}': expected {} at character {}", text_.substr(0, kShown),
         text_.size() > kShown ? "…" : "", expected, at_);
  }

  std::string_view text_;
  size_t at_ = 0;
  int terms_ = 0;
};

[[noreturn]] void overflow(const Expression& expression) {
  fail("overflow: the expression {} exceeds 64 bits", to_string(expression));
}

int64_t floor_divide(const Expression& expression, int64_t a, int64_t b) {
  if (b == 0) fail("division by zero in the expression {}", to_string(expression));
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) overflow(expression);
    return -a;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(const Expression& expression, int64_t a, int64_t b) {
  if (b == 0) fail("division by zero in the expression {}", to_string(expression));
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t power(const Expression& expression, int64_t base, int64_t exponent) {
  if (exponent < 0) fail("a negative power in the expression {}", to_string(expression));
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (; exponent > 0; --exponent)  // at most 63 times before it overflows
    if (__builtin_mul_overflow(result, base, &result)) overflow(expression);
  return result;
}

int64_t fold(const Expression& expression, const std::vector<int64_t>& values) {
  int64_t result = expression.kind == Kind::add ? 0 : 1;
  for (const int64_t value : values) {
    const bool wraps = expression.kind == Kind::add ? __builtin_add_overflow(result, value, &result)
                                                    : __builtin_mul_overflow(result, value, &result);
    if (wraps) overflow(expression);
  }
  return result;
}

int64_t applied(const Expression& e, const std::vector<int64_t>& v) {
  const auto is_true = [](int64_t value) { return value != 0; };
  switch (e.kind) {
    case Kind::add:
    case Kind::multiply: return fold(e, v);
    case Kind::power: return power(e, v[0], v[1]);
    case Kind::floor_divide: return floor_divide(e, v[0], v[1]);
    case Kind::ceil_divide: return floor_divide(e, v[0], v[1]) + (modulo(e, v[0], v[1]) != 0);
    case Kind::modulo: return modulo(e, v[0], v[1]);
    case Kind::modular_indexing: return modulo(e, floor_divide(e, v[0], v[1]), v[2]);
    case Kind::minimum: return *std::min_element(v.begin(), v.end());
    case Kind::maximum: return *std::max_element(v.begin(), v.end());
    case Kind::absolute:
      if (v[0] == std::numeric_limits<int64_t>::min()) overflow(e);
      return v[0] < 0 ? -v[0] : v[0];
    case Kind::equal: return v[0] == v[1];
    case Kind::unequal: return v[0] != v[1];
    case Kind::less: return v[0] < v[1];
    case Kind::less_equal: return v[0] <= v[1];
    case Kind::greater: return v[0] > v[1];
    case Kind::greater_equal: return v[0] >= v[1];
    case Kind::all: return std::all_of(v.begin(), v.end(), is_true);
    case Kind::any: return std::any_of(v.begin(), v.end(), is_true);
    case Kind::negation: return v[0] == 0;
    case Kind::choice: return v[0] ? v[1] : v[2];
    case Kind::identity: return v[0];
    case Kind::integer:
    case Kind::symbol:
    case Kind::unknown: break;
  }
  fail("the function {} of the expression {} is not known", e.name, to_string(e));
}

const Function& function_of(Kind kind) {
  return *std::find_if(std::begin(kFunctions), std::end(kFunctions),
                       [&](const Function& function) { return function.kind == kind; });
}

bool contains(const Expression& expression, const std::string& symbol) {
  if (expression.kind == Kind::symbol) return expression.name == symbol;
  return std::any_of(expression.arguments.begin(), expression.arguments.end(),
                     [&](const Expression& argument) { return contains(argument, symbol); });
}

// Whether only sums and products stand above the symbol, and it occurs once: then the expression is linear.
bool is_linear(const Expression& expression, const std::string& symbol) {
  if (expression.kind == Kind::symbol) return true;
  if (expression.kind == Kind::unknown) return false;
  const Expression* inner = nullptr;
  for (const Expression& argument : expression.arguments) {
    if (!contains(argument, symbol)) continue;
    if (inner) return false;
    inner = &argument;
  }
  if (!inner) return true;
  return (expression.kind == Kind::add || expression.kind == Kind::multiply) && is_linear(*inner, symbol);
}

void collect_symbols(const Expression& expression, std::vector<std::string>& names) {
  if (expression.kind == Kind::symbol &&
      std::find(names.begin(), names.end(), expression.name) == names.end())
    names.push_back(expression.name);
  for (const Expression& argument : expression.arguments) collect_symbols(argument, names);
}

}  // namespace

Expression parse_expression(std::string_view srepr) { return ExpressionParser(srepr).whole(); }

int64_t evaluate(const Expression& expression, const SymbolValues& symbols) {
  if (expression.kind == Kind::integer) return expression.number;
  if (expression.kind == Kind::symbol) {
    const auto found = symbols.find(expression.name);
    if (found == symbols.end()) fail("the symbol {} has no value", expression.name);
    return found->second;
  }
  std::vector<int64_t> values;
  values.reserve(expression.arguments.size());
  for (const Expression& argument : expression.arguments) values.push_back(evaluate(argument, symbols));
  return applied(expression, values);
}

std::string to_srepr(const Expression& expression) {
  if (expression.kind == Kind::integer) return fmt::format("Integer({})", expression.number);
  if (expression.kind == Kind::symbol) {
    const char quote = expression.name.find('\'') == std::string::npos ? '\'' : '"';
    return fmt::format("Symbol({0}{1}{0})", quote, expression.name);
  }
  std::string text;
  for (const Expression& argument : expression.arguments) {
    if (!text.empty()) text += ", ";
    text += to_srepr(argument);
  }
  const bool unknown = expression.kind == Kind::unknown;
  return fmt::format("{}({})", unknown ? expression.name : function_of(expression.kind).name, text);
}

std::string to_string(const Expression& expression) {
  if (expression.kind == Kind::integer) return std::to_string(expression.number);
  if (expression.kind == Kind::symbol) return expression.name;
  const bool unknown = expression.kind == Kind::unknown;
  const std::string_view name = unknown ? expression.name : function_of(expression.kind).name;
  const std::string_view infix = unknown ? "" : function_of(expression.kind).infix;
  std::string text;
  for (const Expression& argument : expression.arguments) {
    if (!text.empty()) text += infix.empty() ? ", " : infix;
    const bool brackets = !infix.empty() && !argument.arguments.empty();
    text += brackets ? '(' + to_string(argument) + ')' : to_string(argument);
  }
  return infix.empty() ? fmt::format("{}({})", name, text) : text;
}

std::vector<std::string> symbols_of(const Expression& expression) {
  std::vector<std::string> names;
  collect_symbols(expression, names);
  return names;
}

std::string unknown_function_of(const Expression& expression) {
  if (expression.kind == Kind::unknown) return expression.name;
  for (const Expression& argument : expression.arguments)
    if (std::string name = unknown_function_of(argument); !name.empty()) return name;
  return {};
}

std::optional<Solution> solve(const Expression& expression, const SymbolValues& known, int64_t wanted) {
  std::string missing;
  SymbolValues values;
  for (const std::string& symbol : symbols_of(expression)) {
    if (const auto found = known.find(symbol); found != known.end()) {
      values.insert(*found);
      continue;
    }
    if (!missing.empty()) return std::nullopt;
    missing = symbol;
  }
  if (missing.empty() || !is_linear(expression, missing)) return std::nullopt;

  const auto at = [&](int64_t value) {
    values[missing] = value;
    return evaluate(expression, values);
  };
  const int64_t constant = at(0);
  int64_t slope = 0, rest = 0;
  if (__builtin_sub_overflow(at(1), constant, &slope) || __builtin_sub_overflow(wanted, constant, &rest) ||
      slope == 0 || (slope != -1 && rest % slope != 0) || rest == std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return Solution{missing, rest / slope};
}

}  // namespace metaprof
