#include "program/program.h"

#include <algorithm>

namespace metaprof {

const Operand* GraphNode::operand_named(std::string_view name) const {
  const auto found = std::ranges::find(operands, name, &Operand::name);
  return found == operands.end() ? nullptr : &*found;
}

bool makes_only_numbers(const Graph& graph, const GraphNode& node) {
  const auto is_number = [&](ValueId value) {
    return value != kNoValue && graph.values[static_cast<size_t>(value)].number.has_value();
  };
  return !node.targets.empty() && std::ranges::all_of(node.targets, [&](const Target& target) {
    return std::ranges::all_of(target.values, is_number);
  });
}

ValueId Program::loss() const {
  for (const ProgramOutput& output : outputs)
    if (output.kind == ProgramOutput::Kind::loss) return output.operand.value;
  for (const ProgramOutput& output : outputs) {
    if (output.kind != ProgramOutput::Kind::user || output.operand.value == kNoValue) continue;
    const auto& tensor = graph.values[static_cast<size_t>(output.operand.value)].tensor;
    if (tensor && tensor->sizes.empty() && is_floating(tensor->dtype)) return output.operand.value;
  }
  return kNoValue;
}

std::vector<std::vector<std::string>> Program::tied_names() const {
  std::map<int, std::vector<std::string>> groups;
  for (const ProgramInput& input : inputs)
    if (input.tied_to >= 0) groups[input.tied_to].push_back(input.name);
  std::vector<std::vector<std::string>> tied;
  for (auto& [first, names] : groups) {
    names.insert(names.begin(), inputs[static_cast<size_t>(first)].name);
    tied.push_back(std::move(names));
  }
  return tied;
}

}  // namespace metaprof
