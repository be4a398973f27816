#include "program/source/host_constants.h"

#include <algorithm>

#include "program/visit.h"

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
  bool found = false;
  for_each_argument(node, [&](ValueId taken) { found |= taken == value; });
  return found;
}

}  // namespace

void find_host_constants(Program& program, const Registry& registry, bool exported_on_host) {
  for (const ProgramInput& input : program.inputs) {
    if (!is_lifted(input)) continue;
    TensorFacts& tensor = *program.graph.values[size_t(input.value)].tensor;
    const auto only_indexes = [&](const GraphNode& node) {
      return !takes(node, input.value) || is_indexing(registry.find(node.op));
    };
    const bool is_number = tensor.sizes.empty() && (exported_on_host || tensor.device);
    if (is_number || std::ranges::all_of(program.graph.nodes, only_indexes))
      tensor.device = Device{DeviceType::cpu};
  }
}

}  // namespace metaprof
