#include "program/resizing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "program/def_use.h"
#include "program/symbols.h"
#include "program/visit.h"

namespace metaprof {
namespace {

bool is_tensor_input(const Program& program, const ProgramInput& input) {
  return input.kind == ProgramInput::Kind::user && input.value != kNoValue &&
         program.graph.values[size_t(input.value)].tensor.has_value();
}

const ProgramInput& input_named(const Program& program, const std::string& name) {
  std::string names;
  for (const ProgramInput& input : program.inputs) {
    if (!is_tensor_input(program, input)) continue;
    if (input.name == name) return input;
    names += (names.empty() ? "" : ", ") + input.name;
  }
  fail("{}: there is no input tensor '{}'; there are: {}", program.origin, name,
       names.empty() ? "none" : names);
}

bool is_symbolic(const TensorFacts& facts) {
  return std::ranges::any_of(facts.size_expressions, [](int32_t expression) { return expression >= 0; });
}

// A part of a dimension before a view that is a part of one after it: of (16, 192) viewed as (192, 16) the
// factors are 16 · 12 · 16; the first two make the 192, the last two were the 192.
struct Factor {
  size_t before, after;  // dimensions
  int64_t size;
};

// Nothing: one side's dimensions cut across the other's. Dimensions of 1 have no factors.
std::optional<std::vector<Factor>> common_factors(SizesView before, SizesView after) {
  std::vector<Factor> factors;
  size_t i = 0, j = 0;
  int64_t a = 1, b = 1;  // what is left of before[i - 1] and after[j - 1]
  while (true) {
    while (a == 1 && i < before.size()) a = before[i++];
    while (b == 1 && j < after.size()) b = after[j++];
    if (a == 1 && b == 1) return factors;
    const int64_t size = std::min(a, b);
    if (size <= 1 || a % size != 0 || b % size != 0) return std::nullopt;
    factors.push_back({i - 1, j - 1, size});
    a /= size;
    b /= size;
  }
}

// The dimension after the view that a dimension of 1 has become: one of 1 at the same place, or that which
// begins there.
size_t place_of_one(SizesView before, size_t dim, SizesView after) {
  int64_t wanted = 1, passed = 1;
  for (size_t i = 0; i < dim; ++i) wanted *= before[i];
  std::optional<size_t> begins;
  for (size_t j = 0; j < after.size(); passed *= after[j++]) {
    if (passed != wanted) continue;
    if (after[j] == 1) return j;
    if (!begins) begins = j;
  }
  return begins.value_or(after.empty() ? 0 : after.size() - 1);
}

bool multiply_to(std::span<Factor* const> factors, int64_t wanted) {
  int64_t all = 1;
  for (const Factor* factor : factors) all *= factor->size;
  return all == wanted;
}

// Changes `changes` of the factors, from one on, so that all of them multiply to `wanted`. What was the size
// of an input is likelier to change than a multiple of it.
bool change_some(const Resizing& resizing, std::span<Factor* const> factors, size_t from, int64_t wanted,
                 size_t changes) {
  if (changes == 0) return multiply_to(factors, wanted);
  for (const bool multiple : {false, true})
    for (size_t i = from; i < factors.size(); ++i)
      for (const Resizing::Change& change : resizing.changes) {
        const int64_t former = factors[i]->size;
        if (change.before <= 1 || former % change.before != 0 || (former != change.before) != multiple)
          continue;
        factors[i]->size = former / change.before * change.now;
        if (change_some(resizing, factors, i + 1, wanted, changes - 1)) return true;
        factors[i]->size = former;
      }
  return false;
}

// A dimension that the view takes apart: all factors that were sizes of inputs change if that fits, else as
// few as do.
bool change_factors(const Resizing& resizing, std::span<Factor* const> factors, int64_t wanted) {
  std::vector<int64_t> former;
  for (Factor* factor : factors)
    former.push_back(std::exchange(factor->size, resized_number(resizing, factor->size)));
  if (multiply_to(factors, wanted)) return true;
  for (size_t i = 0; i < factors.size(); ++i) factors[i]->size = former[i];
  for (size_t changes = 0; changes <= factors.size(); ++changes)
    if (change_some(resizing, factors, 0, wanted, changes)) return true;
  return false;
}

// A dimension that inputs share.
struct SharedDimension {
  size_t at = 0;
  bool integers = false;  // only of inputs of integers
};

// Its size in this input; nothing if the input does not have it.
std::optional<int64_t> size_in(const Program& program, const ProgramInput& input,
                               const SharedDimension& dimension) {
  if (!is_tensor_input(program, input)) return std::nullopt;
  const TensorFacts& facts = *program.graph.values[size_t(input.value)].tensor;
  if (facts.sizes.size() <= dimension.at || (dimension.integers && facts.dtype != DType::i64))
    return std::nullopt;
  return facts.sizes[dimension.at];
}

std::optional<int64_t> size_of(const Program& program, const SharedDimension& dimension) {
  for (const ProgramInput& input : program.inputs)
    if (const auto size = size_in(program, input, dimension)) return size;
  return std::nullopt;
}

// Changes it in all inputs in which it is as large as in the first.
void set_size(Program& program, const SharedDimension& dimension, std::string_view option, int64_t size) {
  const auto before = size_of(program, dimension);
  if (!before)
    fail("{}: {}: no input has it: no {} of {} dimensions or more", program.origin, option,
         dimension.integers ? "tensor of integers" : "tensor", dimension.at + 1);
  std::vector<std::pair<std::string, Sizes>> wanted;
  for (const ProgramInput& input : program.inputs) {
    if (size_in(program, input, dimension) != before) continue;
    Sizes sizes = program.graph.values[size_t(input.value)].tensor->sizes;
    sizes[dimension.at] = size;
    wanted.emplace_back(input.name, std::move(sizes));
  }
  // A symbol that two inputs share is bound with the first of them.
  for (const auto& [name, sizes] : wanted)
    if (program.graph.values[size_t(input_named(program, name).value)].tensor->sizes != sizes)
      resize_input(program, name, sizes);
}

// --- Captured programs have no inputs: what they call with these names has been brought from the host, or made

// A call that passes on what it is given: a copy to the device, another handle.
bool passes_on(const GraphNode& node) {
  for (const std::string_view op :
       {"step::alias", "aten::detach", "aten::contiguous", "aten::_to_copy", "aten::pin_memory"})
    if (node.op == op) return true;
  return node.op.starts_with("aten::to.");
}

bool is_named_input(const GraphNode& node) {
  return node.op == "step::name" && node.operands.size() >= 3 &&
         node.operands[0].constant.kind() == Value::Kind::string &&
         node.operands[0].constant.string() == "input";
}

// A tensor that is brought from the host, or made on the device, and is no state of the program.
struct Origin {
  ValueId value = kNoValue;
  bool of_input = false;  // the program names it, or what it is passed on as, an input of a module
};

// In the order in which the program has them.
std::vector<Origin> origins_of_inputs(const Program& program) {
  const Graph& graph = program.graph;
  const DefUse def_use(graph);
  std::vector<char> is_origin(graph.values.size()), is_state(graph.values.size()),
      is_input(graph.values.size());
  for (const GraphNode& node : graph.nodes) {
    if (node.op == "step::tensor")
      for_each_result(node, [&](ValueId value) {
        const auto& facts = graph.values[size_t(value)].tensor;
        is_origin[size_t(value)] = facts && facts->device && facts->device->is_cpu();
      });
    if (node.op != "step::name" || node.operands.size() < 3) continue;
    ValueId value = node.operands[2].value;
    if (value == kNoValue) continue;  // the name of a number
    for (int32_t maker = def_use.maker(value); maker != kNoNode; maker = def_use.maker(value)) {
      const GraphNode& made = graph.nodes[size_t(maker)];
      if (!passes_on(made) || made.operands.empty() || made.operands[0].value == kNoValue) break;
      value = made.operands[0].value;
    }
    (is_named_input(node) ? is_input : is_state)[size_t(value)] = true;
  }
  std::vector<Origin> origins;
  for (size_t value = 0; value < is_origin.size(); ++value)
    if ((is_origin[value] || is_input[value]) && !is_state[value] && graph.values[value].tensor)
      origins.push_back({ValueId(value), is_input[value] != 0});
  return origins;
}

// The size stands in the facts of a tensor of the host, and in the call of one that is made. False: another call makes it, of which it follows.
bool resize_origin(Program& program, ValueId value, size_t at, int64_t size) {
  Graph& graph = program.graph;
  TensorFacts& facts = *graph.values[size_t(value)].tensor;
  Value* stated = nullptr;
  for (GraphNode& node : graph.nodes) {
    bool makes = false;
    for_each_result(node, [&](ValueId made) { makes |= made == value; });
    if (!makes || node.op == "step::tensor") continue;
    for (Operand& operand : node.operands)
      if (operand.constant.kind() == Value::Kind::integers && operand.constant.integers() == facts.sizes)
        stated = &operand.constant;
    if (!stated) return false;
    break;
  }
  program.resizing.inputs.emplace(value, facts.sizes);
  facts.sizes[at] = size;
  facts.strides = contiguous_strides(facts.sizes);
  check_sizes(graph.values[size_t(value)]);
  if (stated) *stated = Value(facts.sizes);
  return true;
}

// The inputs of modules that are as large as `size` there must follow from what was resized: one of them, at least, where there are any.
void expect_inputs_follow(const Program& program, const std::vector<ValueId>& resized, size_t at,
                          int64_t size, std::string_view option) {
  const Graph& graph = program.graph;
  std::vector<char> follows(graph.values.size());
  for (const ValueId value : resized) follows[size_t(value)] = true;
  bool any = false;
  for (const GraphNode& node : graph.nodes) {
    bool takes = false;
    for_each_argument(node, [&](ValueId value) { takes |= follows[size_t(value)] != 0; });
    if (takes) for_each_result(node, [&](ValueId value) { follows[size_t(value)] = true; });
    if (!is_named_input(node)) continue;
    const ValueId input = node.operands[2].value;
    if (input == kNoValue) continue;  // the name of a number
    if (std::ranges::find(resized, input) != resized.end()) return;
    const auto& facts = graph.values[size_t(input)].tensor;
    if (!facts || facts->sizes.size() <= at || facts->sizes[at] != size) continue;
    if (takes) return;
    any = true;
  }
  if (any)
    fail(
        "{}: {}: none of the inputs of its modules follows from a tensor that the program brings from the "
        "host or makes with a size",
        program.origin, option);
}

// Inputs of modules say how large the dimension was, and what else is brought from the host where there are none.
void set_captured_size(Program& program, const SharedDimension& dimension, std::string_view option,
                       int64_t size) {
  const std::vector<Origin> origins = origins_of_inputs(program);
  const auto size_at = [&](ValueId value) -> std::optional<int64_t> {
    const TensorFacts& facts = *program.graph.values[size_t(value)].tensor;
    if (facts.sizes.size() <= dimension.at || (dimension.integers && facts.dtype != DType::i64))
      return std::nullopt;
    return facts.sizes[dimension.at];
  };
  std::optional<int64_t> before;
  for (const bool of_input : {true, false})
    for (const Origin& origin : origins)
      if (!before && origin.of_input == of_input) before = size_at(origin.value);
  if (!before) fail("{}: {}: the program brings no tensor from the host that has it", program.origin, option);
  if (*before == size) return;
  std::vector<ValueId> resized;
  for (const Origin& origin : origins)
    if (size_at(origin.value) == before && resize_origin(program, origin.value, dimension.at, size))
      resized.push_back(origin.value);
  expect_inputs_follow(program, resized, dimension.at, *before, option);
  program.resizing.changes.push_back({*before, size});
}

// A batch of 1 leaves no factor: (64, 768) viewed as (1, 64, 768). Where the dimension has grown by what a 1
// has become, the 1 before it takes that; gives back how much.
int64_t grown_one(const Resizing& resizing, SizesView target, const Factor& factor, int64_t actual,
                  Sizes& sizes) {
  for (const Resizing::Change& change : resizing.changes) {
    if (change.before != 1 || actual != change.now * resized_number(resizing, factor.size)) continue;
    for (size_t j = factor.after; j-- > 0 && target[j] == 1;) {
      if (sizes[j] != 1) continue;
      sizes[j] = change.now;
      return change.now;
    }
  }
  return 1;
}

}  // namespace

void resize_input(Program& program, const std::string& name, SizesView sizes) {
  const ProgramInput& input = input_named(program, name);
  ValueFacts& value = program.graph.values[size_t(input.value)];
  TensorFacts& facts = *value.tensor;
  if (facts.sizes.size() != sizes.size())
    fail("{}: input {} has {} dimensions, {}; {} does not fit", program.origin, name, facts.sizes.size(),
         to_string(facts.sizes), to_string(sizes));
  if (is_symbolic(facts)) return bind_symbols(program, symbols_for(program, name, sizes));
  Resizing& resizing = program.resizing;
  resizing.inputs.emplace(input.value, facts.sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Resizing::Change change{facts.sizes[i], sizes[i]};
    if (change.before != change.now && std::ranges::find(resizing.changes, change) == resizing.changes.end())
      resizing.changes.push_back(change);
  }
  facts.sizes = Sizes(sizes);
  facts.strides = contiguous_strides(sizes);
  check_sizes(value);
}

void set_batch(Program& program, int64_t batch) {
  (program.captured ? set_captured_size : set_size)(program, {.at = 0}, "--batch", batch);
}
void set_sequence(Program& program, int64_t length) {
  (program.captured ? set_captured_size : set_size)(program, {.at = 1, .integers = true}, "--sequence",
                                                    length);
}

int64_t resized_number(const Resizing& resizing, int64_t number) {
  for (const Resizing::Change& change : resizing.changes)
    if (change.before == number && number != 1) return change.now;
  return number;
}

std::optional<Sizes> resized_view(const Resizing& resizing, SizesView exported, SizesView target,
                                  SizesView actual) {
  auto factors = common_factors(exported, target);
  if (!factors) return std::nullopt;
  Sizes sizes(target);
  std::ranges::fill(sizes, 1);
  for (size_t dim = 0; dim < exported.size(); ++dim) {
    std::vector<Factor*> parts;
    for (Factor& factor : *factors)
      if (factor.before == dim) parts.push_back(&factor);
    if (parts.empty()) {
      if (actual[dim] != 1 && !sizes.empty()) sizes[place_of_one(exported, dim, target)] *= actual[dim];
    } else if (parts.size() == 1) {
      parts[0]->size = actual[dim] / grown_one(resizing, target, *parts[0], actual[dim], sizes);
    } else if (!change_factors(resizing, parts, actual[dim])) {
      return std::nullopt;
    }
  }
  for (const Factor& factor : *factors) sizes[factor.after] *= factor.size;
  return sizes;
}

std::optional<Sizes> resized_expansion(const Resizing& resizing, SizesView exported, SizesView target,
                                       SizesView actual) {
  Sizes sizes(target);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t from_end = sizes.size() - i;
    if (from_end > exported.size() || exported[exported.size() - from_end] == 1) {
      sizes[i] = resized_number(resizing, sizes[i]);
    } else {
      sizes[i] = actual[actual.size() - from_end];
    }
  }
  return sizes;
}

}  // namespace metaprof
