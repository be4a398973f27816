#include "program/edits/linear_calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace metaprof {
namespace {

bool is_linear(const std::string& type) {
  return type == "torch.nn.modules.linear.Linear" || type == "transformers.pytorch_utils.Conv1D" ||
         type == "bitsandbytes.nn.modules.Linear4bit" || type == "bitsandbytes.nn.modules.Linear8bitLt";
}

std::vector<LinearModule> modules_with_weights(const Program& program) {
  std::unordered_map<std::string_view, size_t> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) inputs.emplace(program.inputs[i].name, i);
  std::vector<LinearModule> modules;
  for (const std::string& path : program.modules) {
    const auto type = program.module_types.find(path);
    const auto weight = inputs.find(path + ".weight");
    if (type == program.module_types.end() || !is_linear(type->second) || weight == inputs.end()) continue;
    const ProgramInput& input = program.inputs[weight->second];
    if (input.value == kNoValue) continue;
    const auto& facts = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (!facts || facts->sizes.size() != 2) continue;
    modules.push_back({.path = path, .weight = weight->second, .calls = {}});
  }
  return modules;
}

// What the call is made on: the first value that neither it makes nor the model's state holds.
ValueId input_of(const Graph& graph, const LinearCall& call, const std::unordered_set<ValueId>& state) {
  std::unordered_set<ValueId> made;
  for (size_t i = call.begin; i < call.end; ++i) {
    for (const Operand& operand : graph.nodes[i].operands)
      if (operand.kind == Operand::Kind::value && !made.contains(operand.value) &&
          !state.contains(operand.value))
        return operand.value;
    for (const Target& target : graph.nodes[i].targets)
      made.insert(target.values.begin(), target.values.end());
  }
  return kNoValue;
}

int64_t last_size(const Graph& graph, ValueId value) {
  const auto& facts = graph.values[static_cast<size_t>(value)].tensor;
  return facts && !facts->sizes.empty() ? facts->sizes.back() : 0;
}

}  // namespace

std::vector<LinearModule> linear_modules(const Program& program) {
  std::vector<LinearModule> modules = modules_with_weights(program);
  std::unordered_map<std::string_view, LinearModule*> by_path;
  for (LinearModule& module : modules) by_path.emplace(module.path, &module);
  std::unordered_set<ValueId> state;
  for (const ProgramInput& input : program.inputs)
    if (input.kind != ProgramInput::Kind::user) state.insert(input.value);
  const std::vector<GraphNode>& nodes = program.graph.nodes;
  for (size_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
    end = begin + 1;
    while (end < nodes.size() && nodes[end].modules == nodes[begin].modules) ++end;
    if (nodes[begin].modules < 0) continue;
    const auto& stack = program.module_stacks[static_cast<size_t>(nodes[begin].modules)];
    const auto found = stack.empty() ? by_path.end() : by_path.find(stack.back().path);
    if (found == by_path.end()) continue;
    LinearCall call{.begin = begin, .end = end};
    call.input = input_of(program.graph, call, state);
    for (size_t i = begin; i < end; ++i)
      if (nodes[i].targets.size() == 1 && nodes[i].targets[0].values.size() == 1)
        call.result = nodes[i].targets[0].values[0];
    if (call.input == kNoValue || call.result == kNoValue || !last_size(program.graph, call.input)) continue;
    LinearModule& module = *found->second;
    module.calls.push_back(call);
    // A weight of few bits does not have the shape of what it stands for.
    module.in = last_size(program.graph, call.input);
    module.out = last_size(program.graph, call.result);
  }
  return modules;
}

std::string head_of(const std::vector<LinearModule>& modules) {
  const LinearModule* head = nullptr;
  for (const LinearModule& module : modules)
    if (!module.calls.empty() && (!head || module.calls.back().end > head->calls.back().end)) head = &module;
  return head ? head->path : "";
}

}  // namespace metaprof
