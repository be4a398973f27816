// What the operands of a call become: values, and what is decided by how the program is run.

#include <algorithm>

#include "core/error.h"
#include "program/resizing.h"
#include "program/visit.h"
#include "step/eager/interpreter.h"

namespace metaprof {

Value Interpreter::evaluate(const Operand& operand, const Values& values) const {
  switch (operand.kind) {
    case Operand::Kind::constant:
      if (operand.constant.kind() == Value::Kind::device && operand.constant.device() == kModelDevice)
        return Value(session_.device);
      return operand.constant;
    case Operand::Kind::value: return values[size_t(operand.value)];
    case Operand::Kind::values: {
      Value::Tensors tensors;
      for (const ValueId value : operand.values)
        tensors.push_back(value == kNoValue ? Tensor() : values[size_t(value)].tensor());
      return Value(std::move(tensors));
    }
    case Operand::Kind::integers: {
      Sizes integers;
      for (size_t i = 0; i < operand.numbers.size(); ++i)
        integers.push_back(i < operand.values.size() && operand.values[i] != kNoValue
                               ? values[size_t(operand.values[i])].integer()
                               : operand.numbers[i]);
      return Value(integers);
    }
    default: return Value();
  }
}

namespace {

bool has_running_statistics(const Instruction& instruction) {
  const int mean = instruction.op->schema.find(name_hash("running_mean"));
  for (size_t i = 0; i < instruction.places.size(); ++i)
    if (instruction.places[i].argument == mean)
      return instruction.node->operands[i].kind == Operand::Kind::value;
  return false;
}

}  // namespace

// What was written down while exporting, but is decided by how the model is run.
Value Interpreter::adapt(const Instruction& instruction, Instruction::Place place, Value value,
                         const Values& values) const {
  // Exporters switch cuDNN off while they trace; the model runs with it.
  if (place.role == Role::cudnn_flag) return Value(true);
  if (!options_.training) {
    if (place.role == Role::training_flag) return Value(false);
    if (place.role == Role::statistics_flag && has_running_statistics(instruction)) return Value(false);
    if (place.role == Role::dropout_probability) return Value(0.0);
  }
  const GraphNode& node = *instruction.node;
  if (program_.captured && place.is_dtype && !value.is_none() && node.dtype_of != kNoValue) {
    const Value& of = values[size_t(node.dtype_of)];
    return of.is_tensor() ? Value(of.tensor().dtype()) : value;
  }
  // A dtype that the source does not name follows the tensors it was taken from: in a model of 16 bits they
  // all have that type, under autocast one has to be asked.
  if (!place.is_dtype || value.is_none() || value.integer() != static_cast<int64_t>(DType::f32)) return value;
  if (options_.dtype != DType::f32) return node.dtype_named ? value : Value(options_.dtype);
  if (session_.modes.autocast && node.dtype_of != kNoValue && values[size_t(node.dtype_of)].is_tensor()) {
    const DType actual = values[size_t(node.dtype_of)].tensor().dtype();
    if (is_reduced_floating(actual)) return Value(actual);
  }
  return value;
}

// Lists that index become tensors of the device of what they look into before the operator is called
// (torch/csrc/autograd/python_variable_indexing.cpp); exports have them on the host. A tensor of the host is moved by the
// operator itself, and a captured call has what it was given.
void Interpreter::move_index_lists(const Instruction& instruction, std::span<Value> given) const {
  if (program_.captured || !options_.moves_indices) return;
  for (const Instruction::Place place : instruction.places) {
    if (!place.is_index_list || !given[place.argument].is_tensors() || !given[0].is_tensor()) continue;
    const Device device = given[0].tensor().device();
    Value::Tensors indices = given[place.argument].tensors();
    for (Tensor& index : indices)
      if (index.defined() && index.device() != device)
        index = call<"to.device">(session_, index, device, index.dtype());
    given[place.argument] = Value(std::move(indices));
  }
}

// Sizes that stand as numbers in the call, where an input is not as large as in the export.
void Interpreter::resize_arguments(const Code& code, const Instruction& instruction,
                                   std::span<Value> given) const {
  const Resizing& resizing = program_.resizing;
  const auto& arguments = instruction.op->schema.arguments;
  const auto tensor = std::ranges::find_if(given, [](const Value& value) { return value.is_tensor(); });
  // A factory says where its result lives, also if it takes the rest from a tensor (new_zeros).
  const bool makes = tensor == given.end() || instruction.op->schema.find(name_hash("device")) >= 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Role role = arguments[i].role;
    if (makes && role == Role::length && given[i].kind() == Value::Kind::integer)
      given[i] = Value(resized_number(resizing, given[i].integer()));
    if (given[i].kind() != Value::Kind::integers) continue;
    if (role != Role::sizes && role != Role::repeats) continue;
    Sizes sizes = given[i].integers();
    if (makes || role == Role::repeats) {
      for (int64_t& size : sizes) size = resized_number(resizing, size);
    } else {
      const SizesView exported = exported_sizes(code, *instruction.node), actual = tensor->tensor().sizes();
      const ValueId made = first_result(*instruction.node);
      if (made == kNoValue || exported.size() != actual.size()) continue;
      const auto& result = code.graph->values[size_t(made)].tensor;
      if (!result) continue;
      const auto viewed = numel(exported) == numel(result->sizes)
                              ? resized_view(resizing, exported, result->sizes, actual)
                              : resized_expansion(resizing, exported, result->sizes, actual);
      if (viewed) sizes = *viewed;
    }
    given[i] = Value(sizes);
  }
}

// What the file says of the sizes of a call's first tensor.
SizesView Interpreter::exported_sizes(const Code& code, const GraphNode& node) const {
  for (const Operand& operand : node.operands) {
    if (operand.kind != Operand::Kind::value) continue;
    if (code.graph == &program_.graph) {
      const auto input = program_.resizing.inputs.find(operand.value);
      if (input != program_.resizing.inputs.end()) return input->second;
    }
    const auto& facts = code.graph->values[size_t(operand.value)].tensor;
    if (facts) return facts->sizes;
  }
  return {};
}

}  // namespace metaprof
