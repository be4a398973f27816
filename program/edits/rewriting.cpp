#include "program/edits/rewriting.h"

#include <fmt/format.h>

#include "core/error.h"

namespace metaprof {
namespace {

const Value* constant_operand(const GraphNode& node, size_t operand) {
  if (operand >= node.operands.size() || node.operands[operand].kind != Operand::Kind::constant)
    return nullptr;
  return &node.operands[operand].constant;
}

}  // namespace

std::string call_text(const Program& program, const GraphNode& node) {
  if (node.source < 0 || program.source_stacks[size_t(node.source)].empty()) return node.op;
  const SourceLine& line = program.source_stacks[size_t(node.source)].back();
  return fmt::format("{} ({}:{})", node.op, line.file, line.line);
}

bool is_step(const GraphNode& node, std::string_view name) {
  constexpr std::string_view kNamespace = "step::";
  return node.op.starts_with(kNamespace) && std::string_view(node.op).substr(kNamespace.size()) == name;
}

void expect_step_calls(const Program& program) {
  for (const GraphNode& node : program.graph.nodes) {
    const auto& operands = node.operands;
    if (is_step(node, "name") && (operands.size() < 3 || operands[2].value == kNoValue))
      fail("{}: step::name takes what a tensor is for, its name and the tensor", program.origin);
    if (is_step(node, "phase") && (operands.size() != 3 || !constant_operand(node, 2)))
      fail("{}: step::phase takes a phase, a step and a micro-batch", program.origin);
  }
}

void replace_nodes(Graph& graph, std::vector<GraphNode> nodes, const std::vector<size_t>& place) {
  graph.nodes = std::move(nodes);
  for (CheckpointRegion& region : graph.checkpoints) {
    region.begin = place[region.begin];
    region.end = place[region.end];
  }
  std::erase_if(graph.checkpoints, [](const CheckpointRegion& region) { return region.begin == region.end; });
}

void keep_nodes(Graph& graph, const std::vector<char>& kept) {
  std::vector<GraphNode> nodes;
  std::vector<size_t> place;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    place.push_back(nodes.size());
    if (kept[i]) nodes.push_back(std::move(graph.nodes[i]));
  }
  place.push_back(nodes.size());
  replace_nodes(graph, std::move(nodes), place);
}

std::string text_operand(const GraphNode& node, size_t operand) {
  const Value* value = constant_operand(node, operand);
  return value && value->kind() == Value::Kind::string ? value->string() : std::string();
}

int64_t integer_operand(const GraphNode& node, size_t operand, int64_t otherwise) {
  const Value* value = constant_operand(node, operand);
  return value && value->kind() == Value::Kind::integer ? value->integer() : otherwise;
}

bool flag_operand(const GraphNode& node, size_t operand, bool otherwise) {
  const Value* value = constant_operand(node, operand);
  return value && value->kind() == Value::Kind::boolean ? value->boolean() : otherwise;
}

}  // namespace metaprof
