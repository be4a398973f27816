#include "estimate/prepare/positions.h"

#include <vector>

#include "core/error.h"
#include "program/resizing.h"

namespace metaprof {
namespace {

using Producers = std::vector<const GraphNode*>;  // by value; null: none

Producers producers_of(const Graph& graph) {
  Producers producers(graph.values.size());
  for (const GraphNode& node : graph.nodes)
    for (const Target& target : node.targets)
      for (const ValueId value : target.values)
        if (value != kNoValue) producers[static_cast<size_t>(value)] = &node;
  return producers;
}

// The one tensor that a call takes; kNoValue: none, or several.
ValueId only_tensor(const Graph& graph, const GraphNode& node) {
  ValueId only = kNoValue;
  for (const Operand& operand : node.operands) {
    if (operand.kind != Operand::Kind::value || !graph.values[static_cast<size_t>(operand.value)].tensor)
      continue;
    if (only != kNoValue) return kNoValue;
    only = operand.value;
  }
  return only;
}

// Whether a value is 0, 1, 2 … in other shapes or with a number added.
bool counts_up(const Graph& graph, const Producers& producers, ValueId value) {
  for (size_t steps = 0; steps < graph.nodes.size() && value != kNoValue; ++steps) {
    const GraphNode* producer = producers[static_cast<size_t>(value)];
    if (!producer) return false;
    if (producer->op.starts_with("aten::arange")) return true;
    value = only_tensor(graph, *producer);
  }
  return false;
}

std::string name_of(const Program& program, ValueId value) {
  for (const ProgramInput& input : program.inputs)
    if (input.value == value) return input.name;
  return program.graph.values[static_cast<size_t>(value)].name;
}

}  // namespace

void check_positions(const Program& program) {
  const Graph& graph = program.graph;
  const Producers producers = producers_of(graph);
  for (const GraphNode& node : graph.nodes) {
    if (node.op != "aten::embedding" && node.op != "aten::embedding.default") continue;
    if (node.operands.size() < 2 || node.operands[1].kind != Operand::Kind::value) continue;
    const ValueId table = node.operands[0].value, indices = node.operands[1].value;
    if (table == kNoValue || !counts_up(graph, producers, indices)) continue;
    const auto& rows = graph.values[static_cast<size_t>(table)].tensor;
    const auto& positions = graph.values[static_cast<size_t>(indices)].tensor;
    if (!rows || !positions || rows->sizes.empty() || positions->sizes.empty()) continue;
    const int64_t length = resized_number(program.resizing, positions->sizes[positions->sizes.size() - 1]);
    if (length > rows->sizes[0])
      fail("{}: {} has {} positions, and the inputs have {}: the step would end with an index error",
           program.origin, name_of(program, table), rows->sizes[0], length);
  }
}

}  // namespace metaprof
