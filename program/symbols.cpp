#include "program/symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace metaprof {
namespace {

// Evaluates expressions of a program, each once.
class Evaluator {
 public:
  explicit Evaluator(const Program& program) : program_(program), values_(program.expressions.size()) {}

  int64_t value(int32_t index) {
    auto& known = values_[static_cast<size_t>(index)];
    if (!known) known = evaluated(program_.expressions[static_cast<size_t>(index)]);
    return *known;
  }

  void update(Graph& graph) {
    for (ValueFacts& facts : graph.values) update(facts);
    for (GraphNode& node : graph.nodes)
      for (Operand& operand : node.operands) {
        if (!operand.graph) continue;
        auto copy = std::make_shared<Graph>(*operand.graph);
        update(*copy);
        operand.graph = std::move(copy);
      }
  }

 private:
  // A function that is not known here has the value that the file gives; `bind_symbols` refuses to change
  // the symbols inside it.
  int64_t evaluated(const SymbolicInteger& symbolic) const {
    if (symbolic.hint && !unknown_function_of(*symbolic.expression).empty()) return *symbolic.hint;
    return evaluate(*symbolic.expression, program_.symbols);
  }

  void update(ValueFacts& facts) {
    if (facts.number_expression >= 0) facts.number = value(facts.number_expression);
    if (!facts.tensor) return;
    TensorFacts& tensor = *facts.tensor;
    if (tensor.size_expressions.empty() && tensor.stride_expressions.empty() && tensor.offset_expression < 0)
      return;
    for (size_t i = 0; i < tensor.size_expressions.size(); ++i)
      if (tensor.size_expressions[i] >= 0) tensor.sizes[i] = value(tensor.size_expressions[i]);
    for (size_t i = 0; i < tensor.stride_expressions.size(); ++i)
      if (tensor.stride_expressions[i] >= 0) tensor.strides[i] = value(tensor.stride_expressions[i]);
    if (tensor.offset_expression >= 0) tensor.offset = value(tensor.offset_expression);
    check_sizes(facts);
  }

  const Program& program_;
  std::vector<std::optional<int64_t>> values_;
};

void check_range(const Program& program, const std::string& symbol, int64_t value) {
  const auto found = program.ranges.find(symbol);
  if (found == program.ranges.end()) return;
  const auto& [least, most] = found->second;
  if ((least && value < *least) || (most && value > *most))
    fail("{}: {} = {} is outside the range of the export, {} to {}", program.origin, symbol, value,
         least ? std::to_string(*least) : "any", most ? std::to_string(*most) : "any");
}

// A function that is not known here cannot be evaluated for other values.
void check_computable(const Program& program, const std::string& symbol) {
  for (const SymbolicInteger& symbolic : program.expressions) {
    const std::string function = unknown_function_of(*symbolic.expression);
    if (function.empty()) continue;
    const auto symbols = symbols_of(*symbolic.expression);
    if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end())
      fail("{}: {} cannot be given another value: it is an argument of {}, a function that is not known",
           program.origin, symbol, function);
  }
}

// A user input by name; nullptr if there is none, or if it is a constant.
const ValueFacts* find_input(const Program& program, const std::string& name) {
  for (const ProgramInput& input : program.inputs)
    if (input.kind == ProgramInput::Kind::user && input.name == name && input.value != kNoValue)
      return &program.graph.values[static_cast<size_t>(input.value)];
  return nullptr;
}

// Adds the symbol for which the expression is `wanted`; if it has no free symbol, it must have that value.
void add_solution(const Program& program, int32_t index, int64_t wanted, const std::string& what,
                  SymbolValues& solved) {
  const Expression& expression = *program.expressions[static_cast<size_t>(index)].expression;
  if (const auto solution = solve(expression, solved, wanted)) {
    solved.emplace(solution->symbol, solution->value);
    return;
  }
  SymbolValues all = solved;
  all.insert(program.symbols.begin(), program.symbols.end());
  if (evaluate(expression, all) != wanted)
    fail("{}: {} is {} and cannot be {}", program.origin, what, to_string(expression), wanted);
}

}  // namespace

void check_sizes(const ValueFacts& value) {
  if (!value.tensor) return;
  const TensorFacts& tensor = *value.tensor;
  const auto is_negative = [](int64_t number) { return number < 0; };
  if (std::any_of(tensor.sizes.begin(), tensor.sizes.end(), is_negative))
    fail("{}: negative size in {}", value.name, to_string(tensor.sizes));
  if (std::any_of(tensor.strides.begin(), tensor.strides.end(), is_negative))
    fail("{}: negative stride in {}", value.name, to_string(tensor.strides));
  if (tensor.offset < 0) fail("{}: negative storage offset {}", value.name, tensor.offset);

  int64_t last = tensor.offset, bytes = 0;
  bool overflow = __builtin_mul_overflow(numel(tensor.sizes), element_size(tensor.dtype), &bytes);
  if (std::count(tensor.sizes.begin(), tensor.sizes.end(), 0) == 0)
    for (size_t i = 0; i < tensor.sizes.size() && !overflow; ++i) {
      int64_t step = 0;
      overflow = __builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &step) ||
                 __builtin_add_overflow(last, step, &last);
    }
  if (overflow || __builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, element_size(tensor.dtype), &bytes))
    fail("{}: overflow: the bytes of {} with strides {} exceed 64 bits", value.name, to_string(tensor.sizes),
         to_string(tensor.strides));
}

void bind_symbols(Program& program, const SymbolValues& values) {
  SymbolValues bound = program.symbols;
  for (const auto& [symbol, value] : values) {
    const auto found = bound.find(symbol);
    if (found == bound.end()) {
      std::string names;
      for (const auto& [name, ignored] : bound) names += (names.empty() ? "" : ", ") + name;
      fail("{}: no symbol {} in the program (it has: {})", program.origin, symbol,
           names.empty() ? "none; export it with dynamic_shapes" : names);
    }
    check_range(program, symbol, value);
    if (found->second == value) continue;
    check_computable(program, symbol);
    found->second = value;
  }
  std::swap(program.symbols, bound);
  for (const auto& [symbol, value] : values) program.assumed.erase(symbol);
  try {
    Graph graph = program.graph;
    Evaluator(program).update(graph);
    program.graph = std::move(graph);
  } catch (const Error& error) {
    std::swap(program.symbols, bound);
    fail("{}: {}", program.origin, error.what());
  }
}

SymbolValues symbols_for(const Program& program, const std::string& input, SizesView sizes) {
  const ValueFacts* value = find_input(program, input);
  if (!value || !value->tensor) fail("{}: the program has no tensor input {}", program.origin, input);
  const TensorFacts& facts = *value->tensor;
  if (facts.sizes.size() != sizes.size())
    fail("{}: {} has {} dimensions, {}; got {}", program.origin, input, facts.sizes.size(),
         to_string(facts.sizes), to_string(sizes));

  SymbolValues solved;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int32_t index = facts.size_expressions.empty() ? -1 : facts.size_expressions[i];
    if (index >= 0) {
      add_solution(program, index, sizes[i], fmt::format("dimension {} of {}", i, input), solved);
    } else if (facts.sizes[i] != sizes[i]) {
      fail("{}: dimension {} of {} is fixed at {} in the file, got {}: export it with dynamic_shapes",
           program.origin, i, input, facts.sizes[i], sizes[i]);
    }
  }
  return solved;
}

namespace {

// "; its inputs are input_ids, labels": what somebody may have meant.
std::string names_of_inputs(const Program& program) {
  std::string names;
  for (const ProgramInput& input : program.inputs)
    if (input.kind == ProgramInput::Kind::user) names += (names.empty() ? "" : ", ") + input.name;
  return names.empty() ? names : "; its inputs are " + names;
}

}  // namespace

SymbolValues symbols_for_number(const Program& program, const std::string& input, int64_t number) {
  const ValueFacts* value = find_input(program, input);
  if (!value || value->tensor || !value->number)
    fail("{}: the program has no input {} that is a number and not fixed in the file{}", program.origin,
         input, names_of_inputs(program));
  SymbolValues solved;
  if (value->number_expression >= 0) {
    add_solution(program, value->number_expression, number, input, solved);
  } else if (*value->number != number) {
    fail("{}: {} is fixed at {} in the file, got {}", program.origin, input, *value->number, number);
  }
  return solved;
}

}  // namespace metaprof
