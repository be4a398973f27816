#include "meta/step/constants.h"

#include <algorithm>

namespace metaprof {
namespace {

bool is_lifted(const ProgramInput& input) {
  const std::string_view name = std::string_view(input.name).substr(input.name.rfind('.') + 1);
  return input.kind == ProgramInput::Kind::constant_tensor && name.starts_with("lifted_tensor_");
}

}  // namespace

bool is_indexing(std::string_view op) {
  return op == "aten::index.Tensor" || op == "aten::index_put" || op == "aten::index_put_";
}

bool takes(const GraphNode& node, ValueId value) {
  return std::ranges::any_of(node.operands, [&](const Operand& operand) {
    return operand.value == value || std::ranges::find(operand.values, value) != operand.values.end();
  });
}

bool is_made_on_host(const Program& program, const ProgramInput& input) {
  if (!is_lifted(input)) return false;
  if (program.graph.values[size_t(input.value)].tensor->sizes.empty()) return true;
  return std::ranges::all_of(program.graph.nodes, [&](const GraphNode& node) {
    return is_indexing(node.op) || !takes(node, input.value);
  });
}

}  // namespace metaprof
