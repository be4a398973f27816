#include "meta/program/resizing.h"

#include <algorithm>

#include "meta/core/error.h"
#include "meta/program/symbols.h"

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

int64_t product(SizesView sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  return elements;
}

// Changes numbers of `target`, from one on and each at most once, so that all of them multiply to `wanted`.
// What was the size of an input is likelier to change than a multiple of it; as few change as do, the first
// first.
bool fit_product(const Resizing& resizing, std::span<int64_t> target, size_t from, int64_t wanted,
                 size_t changes) {
  if (changes == 0) return product({target.data(), target.size()}) == wanted;
  for (const bool multiple : {false, true})
    for (size_t i = from; i < target.size(); ++i)
      for (const Resizing::Change& change : resizing.changes) {
        const int64_t former = target[i];
        if (change.before <= 0 || former == 0 || former % change.before != 0) continue;
        if ((former != change.before) != multiple) continue;
        target[i] = former / change.before * change.now;
        if (fit_product(resizing, target, i + 1, wanted, changes - 1)) return true;
        target[i] = former;
      }
  return false;
}

}  // namespace

std::optional<int64_t> batch_of(const Program& program) {
  for (const ProgramInput& input : program.inputs) {
    if (!is_tensor_input(program, input)) continue;
    const Sizes& sizes = program.graph.values[size_t(input.value)].tensor->sizes;
    if (!sizes.empty()) return sizes[0];
  }
  return std::nullopt;
}

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
  const auto before = batch_of(program);
  if (!before) fail("{}: --batch: the model has no input tensor", program.origin);
  std::vector<std::pair<std::string, Sizes>> wanted;
  for (const ProgramInput& input : program.inputs) {
    if (!is_tensor_input(program, input)) continue;
    Sizes sizes = program.graph.values[size_t(input.value)].tensor->sizes;
    if (sizes.empty() || sizes[0] != *before) continue;
    sizes[0] = batch;
    wanted.emplace_back(input.name, std::move(sizes));
  }
  // A symbol that two inputs share is bound with the first of them.
  for (const auto& [name, sizes] : wanted)
    if (program.graph.values[size_t(input_named(program, name).value)].tensor->sizes != sizes)
      resize_input(program, name, sizes);
}

int64_t resized_number(const Resizing& resizing, int64_t number) {
  for (const Resizing::Change& change : resizing.changes)
    if (change.before == number) return change.now;
  return number;
}

std::optional<Sizes> resized_view(const Resizing& resizing, SizesView exported, SizesView target,
                                  SizesView actual) {
  Sizes sizes(target);
  // Dimensions that multiply to the same on both sides belong together: (16, 56, 56, 96) → (16, 8, 7, 8, 7,
  // 96).
  size_t in = 0, out = 0;
  while (in < exported.size() || out < sizes.size()) {
    const size_t first_in = in, first_out = out;
    int64_t before = in < exported.size() ? exported[in++] : 1, made = out < sizes.size() ? sizes[out++] : 1;
    while (before != made) {
      if (before < made ? in == exported.size() : out == sizes.size()) return std::nullopt;
      before < made ? before *= exported[in++] : made *= sizes[out++];
    }
    int64_t wanted = 1;
    for (size_t i = first_in; i < in; ++i) wanted *= actual[i];
    const std::span<int64_t> group(sizes.begin() + first_out, out - first_out);
    size_t changes = 0;
    while (changes <= group.size() && !fit_product(resizing, group, 0, wanted, changes)) ++changes;
    if (changes > group.size()) return std::nullopt;
  }
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
