#include "estimate/prepare/model_inputs.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/formats/text_cursor.h"
#include "program/resizing.h"
#include "program/symbols.h"

namespace metaprof {
namespace {

// "4x512", "4,512", "[4, 512]", "7"; nothing: it is no list of sizes.
std::optional<Sizes> parse_sizes(std::string_view text) {
  Sizes sizes;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  while (true) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    int64_t size = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return std::nullopt;
    sizes.push_back(size);
    text.remove_prefix(static_cast<size_t>(rest - text.data()));
    if (text.empty()) return sizes;
    if (text[0] != 'x' && text[0] != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

bool is_tensor_input(const Program& program, const std::string& name) {
  return std::ranges::any_of(program.inputs, [&](const ProgramInput& input) {
    return input.kind == ProgramInput::Kind::user && input.value != kNoValue && input.name == name &&
           program.graph.values[static_cast<size_t>(input.value)].tensor.has_value();
  });
}

std::pair<std::string, Sizes> parse_setting(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals != std::string::npos && equals > 0)
    if (const auto sizes = parse_sizes(std::string_view(setting).substr(equals + 1)))
      return {setting.substr(0, equals), *sizes};
  fail("--set: '{}' is no NAME=SHAPE or NAME=VALUE, as ids=4x512 or n=7", setting);
}

void apply(Program& program, const std::string& setting) {
  const auto [name, sizes] = parse_setting(setting);
  if (is_tensor_input(program, name)) return resize_input(program, name, sizes);
  if (sizes.size() == 1 && program.symbols.contains(name)) return bind_symbols(program, {{name, sizes[0]}});
  if (sizes.size() != 1) resize_input(program, name, sizes);  // an error that lists the inputs
  bind_symbols(program, symbols_for_number(program, name, sizes[0]));
}

[[noreturn]] void malformed_input(const std::string& input) {
  fail("--input: '{}' is no NAME=TYPE[SHAPE] and no NAME=NUMBER, as x=f32[8,3,224,224] or n=4", input);
}

// "f32[8,3]"; "f32[]" has no dimensions
ScriptInput parse_tensor(const std::string& input, std::string_view text) {
  const size_t bracket = text.find('[');
  ScriptInput parsed;
  parsed.dtype = dtype_named(text.substr(0, bracket));
  if (!parsed.dtype)
    fail("--input: '{}': there is no type '{}'; there are f32, f16, bf16, i64, b8 …", input,
         text.substr(0, bracket));
  const std::string_view shape = text.substr(bracket);
  if (shape == "[]") return parsed;
  const std::optional<Sizes> sizes = parse_sizes(shape);
  if (!sizes) malformed_input(input);
  parsed.sizes = *sizes;
  return parsed;
}

ScriptInput parse_input(const std::string& input, std::string_view text) {
  if (text.ends_with(']') && text.find('[') != text.npos) return parse_tensor(input, text);
  ScriptInput parsed;
  double real = 0;
  if (text == "true" || text == "True") {
    parsed.number = true;
  } else if (text == "false" || text == "False") {
    parsed.number = false;
  } else if (const std::optional<int64_t> number = whole_number(text)) {
    parsed.number = *number;
  } else if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
             error == std::errc() && end == text.data() + text.size() && !text.empty()) {
    parsed.number = real;
  } else {
    malformed_input(input);
  }
  return parsed;
}

}  // namespace

std::map<std::string, ScriptInput> script_inputs(const std::vector<std::string>& inputs,
                                                 std::optional<int> batch) {
  std::map<std::string, ScriptInput> parsed;
  std::optional<int64_t> first_size;
  for (const std::string& input : inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos || equals == 0) malformed_input(input);
    const std::string name = input.substr(0, equals);
    const auto [added, is_new] =
        parsed.emplace(name, parse_input(input, std::string_view(input).substr(equals + 1)));
    if (!is_new) fail("--input: {} is given twice", name);
    if (!first_size && !added->second.sizes.empty()) first_size = added->second.sizes[0];
  }
  if (!batch) return parsed;
  if (!first_size) fail("--batch: no --input is a tensor with a size, as x=f32[8,3,224,224]");
  for (auto& [name, input] : parsed)
    if (!input.sizes.empty() && input.sizes[0] == *first_size) input.sizes[0] = *batch;
  return parsed;
}

std::map<std::string, Sizes> sizes_of_settings(const std::vector<std::string>& settings) {
  std::map<std::string, Sizes> sizes;
  for (const std::string& setting : settings) sizes.insert(parse_setting(setting));
  return sizes;
}

void set_inputs(Program& program, std::optional<int> batch, std::optional<int> sequence,
                const std::vector<std::string>& settings) {
  if (batch) set_batch(program, *batch);
  if (sequence) set_sequence(program, *sequence);
  for (const std::string& setting : settings) apply(program, setting);
}

}  // namespace metaprof
