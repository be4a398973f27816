#include "program/text/text_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/text_cursor.h"
#include "program/symbols.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr size_t kMostDimensions = 64;  // the framework's limit
constexpr size_t kNumbersAhead = 1000;  // by which a value's number may lead how many there are, to be listed

// A list of constants of one kind becomes one constant.
Value list_constant(const std::vector<Value>& elements, const ProgramLine& line) {
  const Value::Kind kind = elements.empty() ? Value::Kind::integer : elements[0].kind();
  if (!std::ranges::all_of(elements, [&](const Value& e) { return e.kind() == kind; }))
    line.wrong("the elements of a list are of different kinds");
  if (kind == Value::Kind::integer) {
    Sizes integers;
    for (const Value& element : elements) integers.push_back(element.integer());
    return integers;
  }
  if (kind == Value::Kind::real) {
    Value::Reals reals;
    for (const Value& element : elements) reals.push_back(element.real());
    return reals;
  }
  if (kind != Value::Kind::boolean) line.wrong("a list holds integers, numbers, True and False, or values");
  Value::Booleans booleans;
  for (const Value& element : elements) booleans.push_back(element.boolean());
  return booleans;
}

}  // namespace

// Nearly all values of captured programs are numbered in the order in which they are made.
std::optional<size_t> TextGraph::number_of(std::string_view name) const {
  if (name.empty() || (name[0] == '0' && name.size() > 1)) return std::nullopt;
  const auto number = whole_number<uint32_t>(name);
  return number && *number <= 2 * graph.values.size() + kNumbersAhead ? std::optional<size_t>(*number)
                                                                      : std::nullopt;
}

ValueId TextGraph::define(ProgramLine& line) {
  if (line.skip("_")) return kNoValue;
  const std::string name = line.value_name();
  const auto id = static_cast<ValueId>(graph.values.size());
  if (found(name) != kNoValue) line.wrong("the value %" + name + " is made twice");
  if (const auto number = number_of(name)) {
    if (numbered_.size() <= *number) numbered_.resize(*number + 1, kNoValue);
    numbered_[*number] = id;
  } else {
    ids_.emplace(name, id);
  }
  ValueFacts& made = graph.values.emplace_back();
  const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) made.name = name;
  if (line.skip(':')) facts(line, made);
  return id;
}

// A number may have been too large for the list when its value was made, and fit into it now.
ValueId TextGraph::found(const std::string& name) const {
  const auto number = number_of(name);
  if (number && *number < numbered_.size() && numbered_[*number] != kNoValue) return numbered_[*number];
  if (ids_.empty()) return kNoValue;
  const auto named = ids_.find(name);
  return named == ids_.end() ? kNoValue : named->second;
}

ValueId TextGraph::made(ProgramLine& line, const std::string& name) const {
  const ValueId value = found(name);
  if (value == kNoValue) line.wrong("there is no value %" + name + " yet");
  return value;
}

ValueId TextGraph::made(ProgramLine& line) const { return made(line, line.value_name()); }

ValueId TextGraph::use(ProgramLine& line) const {
  const std::string name = line.value_name();
  const ValueId value = made(line, name);
  const auto index = static_cast<size_t>(value);
  if (index < dropped_.size() && dropped_[index]) line.wrong("the value %" + name + " has been dropped");
  return value;
}

ValueId TextGraph::drop(ProgramLine& line) {
  const ValueId value = use(line);
  dropped_.resize(graph.values.size());
  dropped_[static_cast<size_t>(value)] = true;
  return value;
}

void TextGraph::facts(ProgramLine& line, ValueFacts& facts) const {
  const std::string_view first = line.peek();
  if (first != "int" && first != "real") facts.tensor = tensor(line);
  if (line.skip("int")) {
    if (!line.next_is('<')) facts.number = line.integer("an integer");
    if (line.next_is('<')) facts.number_expression = expression(line);
  }
  if (line.skip("real")) {
    const Value number = line.constant();
    if (number.kind() != Value::Kind::real) line.wrong("a number with a point is expected behind 'real'");
    facts.real = number.real();
  }
  try {
    check_sizes(facts);
  } catch (const Error& error) {
    line.wrong(error.what());
  }
}

TensorFacts TextGraph::tensor(ProgramLine& line) const {
  const auto dtype = dtype_named(line.peek());
  if (!dtype) line.expected("a tensor as f32[2,3], 'int' or 'real'");
  TensorFacts tensor;
  tensor.dtype = *dtype;
  line.skip(line.peek());
  line.take('[');
  numbers(line, ']', tensor.sizes, tensor.size_expressions);
  if (line.skip('(')) {
    numbers(line, ')', tensor.strides, tensor.stride_expressions);
    if (tensor.strides.size() != tensor.sizes.size())
      line.wrong(fmt::format("{} strides for {} sizes", tensor.strides.size(), tensor.sizes.size()));
  } else {
    tensor.strides = contiguous_strides(tensor.sizes);
  }
  if (line.skip("offset")) tensor.offset = number(line, tensor.offset_expression);
  if (line.skip("on")) tensor.device = line.device();
  tensor.requires_grad = line.skip("grad");
  return tensor;
}

int64_t TextGraph::number(ProgramLine& line, int32_t& expression) const {
  const int64_t number = line.integer("an integer");
  if (line.next_is('<')) expression = this->expression(line);
  return number;
}

int32_t TextGraph::expression(ProgramLine& line) const {
  line.take('<');
  const int64_t index = line.numbered('e', "an expression as e0");
  if (index >= static_cast<int64_t>(tables_.expressions))
    line.wrong(fmt::format("there is no expression e{}", index));
  line.take('>');
  return static_cast<int32_t>(index);
}

void TextGraph::numbers(ProgramLine& line, char end, Sizes& numbers,
                        std::vector<int32_t>& expressions) const {
  while (!line.skip(end)) {
    if (!numbers.empty()) line.take(',');
    if (numbers.size() == kMostDimensions)
      line.wrong(fmt::format("more than {} dimensions: the framework allows no more", kMostDimensions));
    int32_t expression = -1;
    numbers.push_back(number(line, expression));
    if (expression < 0 && expressions.empty()) continue;
    expressions.resize(numbers.size(), -1);
    expressions.back() = expression;
  }
}

// A word followed by "=" is the name of an argument.
Operand TextGraph::operand(ProgramLine& line) const {
  Operand operand;
  if (line.is_named()) {
    operand.name = line.word("the name of an argument");
    line.take('=');
  }
  operand_value(line, operand);
  return operand;
}

void TextGraph::operand_value(ProgramLine& line, Operand& operand) const {
  if (line.next_is('%')) {
    operand.kind = Operand::Kind::value;
    operand.value = use(line);
    return;
  }
  if (line.next_is('[')) return list(line, "", operand);
  if (!line.next_is_letter()) {
    operand.constant = line.constant();
    return;
  }
  for (const std::string_view kind : {"reals", "booleans", "tensors"})
    if (line.skip(kind)) return list(line, kind, operand);
  if (line.skip("ints")) return integer_list(line, operand);
  if (line.skip("graph")) {
    line.take('(');
    const auto graph = tables_.graphs.find(line.numbered('g', "a graph as g0"));
    if (graph == tables_.graphs.end()) line.wrong("there is no such graph yet");
    if (!graph->second) line.wrong("two calls take the same graph");
    line.take(')');
    operand.kind = Operand::Kind::graph;
    operand.graph = std::move(graph->second);
    return;
  }
  if (line.skip("unknown")) {
    line.take('(');
    operand.kind = Operand::Kind::unknown;
    operand.text = line.word("a text");
    line.take(')');
    return;
  }
  operand.constant = line.constant();
}

// A list with a value or None in it is one of values.
void TextGraph::list(ProgramLine& line, std::string_view kind, Operand& operand) const {
  std::vector<Value> constants;
  std::vector<ValueId> values;
  line.take('[');
  while (!line.skip(']')) {
    if (!constants.empty() || !values.empty()) line.take(',');
    if (line.next_is('%')) {
      values.push_back(use(line));
    } else if (line.skip("None")) {
      values.push_back(kNoValue);
    } else {
      constants.push_back(line.constant());
    }
  }
  if (!constants.empty() && !values.empty())
    line.wrong("a list of integers and values is written as ints[4, %n]");
  if (!kind.empty() && !(constants.empty() && values.empty()))
    line.wrong("only an empty list has the name of its kind");
  if (kind == "reals") operand.constant = Value(Value::Reals());
  if (kind == "booleans") operand.constant = Value(Value::Booleans());
  if (kind.empty() && values.empty()) operand.constant = list_constant(constants, line);
  if (kind != "tensors" && values.empty()) return;
  operand.kind = Operand::Kind::values;
  operand.values = std::move(values);
}

void TextGraph::integer_list(ProgramLine& line, Operand& operand) const {
  operand.kind = Operand::Kind::integers;
  line.take('[');
  while (!line.skip(']')) {
    if (!operand.numbers.empty()) line.take(',');
    const bool is_value = line.next_is('%');
    operand.values.push_back(is_value ? use(line) : kNoValue);
    operand.numbers.push_back(is_value ? 0 : line.integer("an integer or a value"));
  }
}

Target TextGraph::target(ProgramLine& line) {
  Target target;
  if (line.skip('(')) {
    line.take(')');
    return target;
  }
  if (!line.skip('[')) {
    target.values.push_back(define(line));
    return target;
  }
  target.list = true;
  while (!line.skip(']')) {
    if (!target.values.empty()) line.take(',');
    target.values.push_back(define(line));
  }
  return target;
}

GraphNode TextGraph::call(ProgramLine& line) {
  GraphNode node;
  const auto before = static_cast<ValueId>(graph.values.size());
  if (line.next_is('%') || line.next_is('[') || line.next_is('(') || line.peek() == "_") {
    do node.targets.push_back(target(line));
    while (line.skip(','));
    line.take('=');
  }
  node.op = line.word("an operator as aten::relu, or one of the words that begin a line");
  line.take('(');
  while (!line.skip(')')) {
    if (!node.operands.empty()) line.take(',');
    node.operands.push_back(operand(line));
  }
  for_each_argument(node, [&](ValueId value) {
    if (value >= before) line.wrong("the call takes a value that it makes itself");
  });
  return node;
}

}  // namespace metaprof
