#include "program/pt2/signature.h"

#include <fmt/format.h>

#include "program/pt2/argument.h"

namespace metaprof {
namespace {

using InputKind = ProgramInput::Kind;
using OutputKind = ProgramOutput::Kind;

Value constant_of(Json argument) {
  const auto [kind, value] = argument.only_member();
  if (kind == "as_int") return value.integer();
  if (kind == "as_float") return value.real();
  if (kind == "as_bool") return value.boolean();
  if (kind == "as_string") return value.string();
  if (kind == "as_none") return nullptr;
  argument.reject(fmt::format("unknown kind of constant input, {}", kind));
}

// The name of a user input in the graph: {"as_tensor": {"name": …}} or {"as_sym_int": {"as_name": …}}.
// Nothing for a constant.
Json name_of_argument(Json argument) {
  const auto [kind, value] = argument.only_member();
  if (!value.is_object()) return {};
  if (const Json name = value.find("name")) return name;
  return value.find("as_name");
}

struct Spec {
  ProgramInput input;
  Json graph_name;  // what graph.inputs calls it, or nothing
};

Spec user_input(Json spec) {
  Spec result;
  const Json argument = spec.at("arg");
  result.graph_name = name_of_argument(argument);
  if (result.graph_name) {
    result.input.name = result.graph_name.string();
  } else {
    result.input.kind = InputKind::constant;
    result.input.constant = constant_of(argument);
  }
  return result;
}

Spec named_input(InputKind kind, Json spec, std::string_view name_key) {
  Spec result;
  result.input.kind = kind;
  result.graph_name = spec.at("arg").at("name");
  result.input.name = spec.at(name_key).string();
  return result;
}

Spec read_spec(Json json, Pt2Context& context) {
  const auto [kind, spec] = json.only_member();
  if (kind == "parameter") return named_input(InputKind::parameter, spec, "parameter_name");
  if (kind == "tensor_constant") return named_input(InputKind::constant_tensor, spec, "tensor_constant_name");
  if (kind == "user_input") return user_input(spec);
  if (kind == "buffer") {
    Spec result = named_input(InputKind::buffer, spec, "buffer_name");
    if (const Json persistent = spec.find("persistent")) result.input.persistent = persistent.boolean();
    return result;
  }
  Spec result;
  result.input.kind = InputKind::constant;
  if (kind == "constant_input") {
    result.input.name = spec.at("name").string();
    result.input.constant = constant_of(spec.at("value"));
  } else if (kind == "custom_obj" || kind == "token") {
    context.warn(fmt::format("{} is of kind {}: what uses it is not modelled", json.path(), kind));
  } else {
    json.reject(fmt::format("unknown kind of input, {}", kind));
  }
  return result;
}

void read_inputs(Json specs, Pt2Context& context) {
  Program& program = context.program;
  if (specs.count() != program.graph.inputs.size())
    specs.reject(
        fmt::format("{} input_specs for {} inputs of the graph", specs.count(), program.graph.inputs.size()));
  specs.for_each([&](Json json) {
    auto [input, name] = read_spec(json, context);
    input.value = program.graph.inputs[program.inputs.size()];
    if (name && (input.value == kNoValue ||
                 program.graph.values[static_cast<size_t>(input.value)].name != name.string()))
      name.reject(fmt::format("'{}' is not the input of the graph at this place", name.raw_string()));
    const bool may_be_number = input.kind == InputKind::user || input.kind == InputKind::constant;
    if (!may_be_number && !program.graph.values[static_cast<size_t>(input.value)].tensor)
      json.reject(fmt::format("'{}' is a number in the graph, expected a tensor", input.name));
    program.inputs.push_back(std::move(input));
  });
}

struct OutputSpec {
  std::string_view key;
  OutputKind kind;
  std::string_view name_key;  // what it is of
};
constexpr OutputSpec kOutputs[] = {
    {"user_output", OutputKind::user, ""},
    {"loss_output", OutputKind::loss, ""},
    {"token", OutputKind::user, ""},
    {"buffer_mutation", OutputKind::buffer_mutation, "buffer_name"},
    {"parameter_mutation", OutputKind::parameter_mutation, "parameter_name"},
    {"user_input_mutation", OutputKind::input_mutation, "user_input_name"},
    {"gradient_to_parameter", OutputKind::gradient, "parameter_name"},
    {"gradient_to_user_input", OutputKind::gradient, "user_input_name"},
};

void read_outputs(Json specs, Pt2Context& context) {
  Program& program = context.program;
  if (specs.count() != program.graph.outputs.size())
    specs.reject(fmt::format("{} output_specs for {} outputs of the graph", specs.count(),
                             program.graph.outputs.size()));
  if (specs.count() == 0) specs.reject("the program has no output: there is nothing to profile");
  specs.for_each([&](Json json) {
    const auto [key, spec] = json.only_member();
    ProgramOutput output;
    output.operand = program.graph.outputs[program.outputs.size()];
    bool known = false;
    for (const OutputSpec& candidate : kOutputs) {
      if (candidate.key != key) continue;
      known = true;
      output.kind = candidate.kind;
      if (!candidate.name_key.empty()) output.name = spec.at(candidate.name_key).string();
    }
    if (!known) json.reject(fmt::format("unknown kind of output, {}", key));
    program.outputs.push_back(std::move(output));
  });
}

}  // namespace

void read_signature(Json signature, Pt2Context& context) {
  read_inputs(signature.at("input_specs"), context);
  read_outputs(signature.at("output_specs"), context);
}

std::string_view find_typical_input(Json signature) {
  std::string_view parameter, input;
  signature.at("input_specs").for_each([&](Json json) {
    if (!parameter.empty()) return;
    const auto [kind, spec] = json.only_member();
    if (kind == "parameter") parameter = spec.at("arg").at("name").raw_string();
    if (kind != "user_input" || !input.empty()) return;
    const auto [argument_kind, argument] = spec.at("arg").only_member();
    if (argument_kind == "as_tensor") input = argument.at("name").raw_string();
  });
  return parameter.empty() ? input : parameter;
}

void read_module_paths(Json module_call_graph, Program& program) {
  module_call_graph.for_each([&](Json entry) {
    const std::string path = without_export_root(entry.at("fqn").string());
    program.module_types.try_emplace(path);
    program.modules.push_back(path);
  });
}

}  // namespace metaprof
