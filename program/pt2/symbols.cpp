#include "program/pt2/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "program/symbols.h"

namespace metaprof {
namespace {

constexpr size_t kMaxSymbols = 1000;

void read_ranges(Json constraints, Program& program) {
  constraints.for_each_member([&](std::string_view symbol, Json range) {
    SymbolRange& result = program.ranges[std::string(symbol)];
    if (const Json least = range.find("min_val")) result.least = least.integer();
    if (const Json most = range.find("max_val")) result.most = most.integer();
  });
}

// Hints of bare symbols, then of expressions with one unknown, as often as that gives something new.
void take_hints(Program& program) {
  for (const auto& [expression, hint] : program.expressions)
    if (hint && expression->kind == Expression::Kind::symbol)
      program.symbols.emplace(expression->name, *hint);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const size_t before = program.symbols.size();
    for (const auto& [expression, hint] : program.expressions)
      if (hint && expression->kind != Expression::Kind::symbol)
        if (const auto solution = solve(*expression, program.symbols, *hint))
          program.symbols.emplace(solution->symbol, solution->value);
    if (program.symbols.size() == before) break;
  }
}

// The symbols of all expressions that will be evaluated: one with an unknown function has its exported value.
std::set<std::string> needed_symbols(const Program& program) {
  std::set<std::string> names;
  for (const auto& [expression, hint] : program.expressions) {
    if (hint && !unknown_function_of(*expression).empty()) continue;
    for (std::string& symbol : symbols_of(*expression)) names.insert(std::move(symbol));
    if (names.size() > kMaxSymbols) fail("{}: more than {} symbols", program.origin, kMaxSymbols);
  }
  return names;
}

// Expressions on which sizes, strides or numbers depend. An offset alone changes no memory: what while_loop gives looks
// into memory of as many trips as there are.
void find_expressions_that_matter(const Graph& graph, std::set<int32_t>& found) {
  for (const ValueFacts& value : graph.values) {
    found.insert(value.number_expression);
    if (!value.tensor) continue;
    found.insert(value.tensor->size_expressions.begin(), value.tensor->size_expressions.end());
    found.insert(value.tensor->stride_expressions.begin(), value.tensor->stride_expressions.end());
  }
  for (const GraphNode& node : graph.nodes)
    for (const Operand& operand : node.operands)
      if (operand.graph) find_expressions_that_matter(*operand.graph, found);
}

bool matters(const Program& program, const std::string& symbol) {
  std::set<int32_t> found;
  find_expressions_that_matter(program.graph, found);
  return std::ranges::any_of(found, [&](int32_t expression) {
    if (expression < 0) return false;
    const auto symbols = symbols_of(*program.expressions[size_t(expression)].expression);
    return std::ranges::find(symbols, symbol) != symbols.end();
  });
}

// The names of symbols that stand for data-dependent sizes begin with u (torch's symbolic_shapes).
void take_bound(const std::string& symbol, Pt2Context& context) {
  Program& program = context.program;
  const auto range = program.ranges.find(symbol);
  if (symbol.starts_with('u') && range != program.ranges.end()) {
    const auto [least, most] = range->second;
    const int64_t value = most.value_or(std::max<int64_t>(least.value_or(1), 1));
    program.symbols.emplace(symbol, value);
    if (!matters(program, symbol)) return;
    program.assumed[symbol] =
        fmt::format("the size {} depends on data: {} {} is taken; give another with --set {}=VALUE", symbol,
                    most ? "its largest value" : "nothing bounds it, and its smallest value", value, symbol);
    return;
  }
  fail("{}: the symbol {} has no value in the file: no input defines it; give one with --set {}=VALUE",
       program.origin, symbol, symbol);
}

void warn_of_unknown_functions(Pt2Context& context) {
  for (const auto& [expression, hint] : context.program.expressions) {
    const std::string function = unknown_function_of(*expression);
    if (function.empty()) continue;
    if (!hint)
      fail("{}: the size {} has no value: the function {} is not known", context.program.origin,
           to_string(*expression), function);
    context.warn(
        fmt::format("the function {} of the size {} is not known: the exported value {} is used, and its "
                    "symbols cannot be changed",
                    function, to_string(*expression), *hint));
  }
}

}  // namespace

void resolve_symbols(Json range_constraints, const SymbolValues& wanted, Pt2Context& context) {
  Program& program = context.program;
  if (range_constraints) read_ranges(range_constraints, program);
  const auto symbols = needed_symbols(program);
  warn_of_unknown_functions(context);
  try {
    take_hints(program);
  } catch (const Error& error) {
    fail("{}: {}", program.origin, error.what());
  }
  for (const std::string& symbol : symbols) {
    if (program.symbols.count(symbol)) continue;
    if (const auto given = wanted.find(symbol); given != wanted.end()) {
      program.symbols.emplace(symbol, given->second);
    } else {
      take_bound(symbol, context);
    }
  }
  if (!program.expressions.empty() || !wanted.empty()) bind_symbols(program, wanted);
}

}  // namespace metaprof
