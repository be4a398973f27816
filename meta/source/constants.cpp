#include "meta/source/constants.h"

#include <algorithm>

namespace metaprof {
namespace {

bool is_lifted(const ProgramInput& input) {
  const std::string_view name = std::string_view(input.name).substr(input.name.rfind('.') + 1);
  return input.kind == ProgramInput::Kind::constant_tensor && name.starts_with("lifted_tensor_");
}

// It takes index tensors: by its schema, "Tensor?[] indices".
bool is_indexing(const Operator* op) {
  return op && std::ranges::any_of(op->schema.arguments, &Argument::optional_elements);
}

bool takes(const GraphNode& node, ValueId value) {
  return std::ranges::any_of(node.operands, [&](const Operand& operand) {
    return operand.value == value || std::ranges::find(operand.values, value) != operand.values.end();
  });
}

}  // namespace

std::set<ValueId> made_on_host(const Program& program, const Registry& registry) {
  std::set<ValueId> values;
  for (const ProgramInput& input : program.inputs) {
    if (!is_lifted(input)) continue;
    const bool is_number = program.graph.values[size_t(input.value)].tensor->sizes.empty();
    const auto only_indexes = [&](const GraphNode& node) {
      return !takes(node, input.value) || is_indexing(registry.find(node.op));
    };
    if (is_number || std::ranges::all_of(program.graph.nodes, only_indexes)) values.insert(input.value);
  }
  return values;
}

}  // namespace metaprof
