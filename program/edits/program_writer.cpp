#include "program/edits/program_writer.h"

#include <algorithm>
#include <unordered_map>

namespace metaprof {

ValueId ProgramWriter::value(const TensorFacts& facts) {
  const auto id = static_cast<ValueId>(program_.graph.values.size());
  program_.graph.values.emplace_back().tensor = facts;
  return id;
}

const TensorFacts& ProgramWriter::facts(ValueId value) const {
  return *program_.graph.values[static_cast<size_t>(value)].tensor;
}

ValueId ProgramWriter::add_state(ProgramInput::Kind kind, const std::string& name, Sizes sizes, DType dtype,
                                 bool trains, bool own_dtype) {
  TensorFacts facts;
  facts.dtype = dtype;
  facts.strides = contiguous_strides(sizes);
  facts.sizes = std::move(sizes);
  facts.requires_grad = trains;
  const ValueId made = value(facts);
  program_.inputs.push_back(
      {.kind = kind, .value = made, .name = name, .own_dtype = own_dtype, .constant = {}});
  program_.graph.inputs.push_back(made);
  return made;
}

void ProgramWriter::add_module(const std::string& after, const std::string& path, const std::string& type) {
  program_.module_types.insert_or_assign(path, type);
  modules_.emplace_back(after, path);
}

int32_t ProgramWriter::stack_within(int32_t stack, const std::string& path, const std::string& type) {
  std::vector<ModuleCall> calls = program_.module_stacks[static_cast<size_t>(stack)];
  // The key of a second call of the outer module ends in "@1", and so does that of what it calls.
  const std::string times = calls.empty() ? "" : calls.back().key.substr(calls.back().path.size());
  calls.push_back({.path = path, .type = type, .key = path + times});
  program_.module_stacks.push_back(std::move(calls));
  return static_cast<int32_t>(program_.module_stacks.size()) - 1;
}

std::vector<ValueId> ProgramWriter::take_held_by_caller(size_t begin, size_t end) {
  std::vector<GraphNode>& nodes = program_.graph.nodes;
  std::vector<ValueId> made, held;
  for (size_t i = begin; i < end; ++i)
    for (const Target& target : nodes[i].targets)
      made.insert(made.end(), target.values.begin(), target.values.end());
  std::erase_if(nodes[end - 1].drops, [&](ValueId value) {
    const bool own = std::ranges::find(made, value) != made.end();
    if (!own) held.push_back(value);
    return !own;
  });
  return held;
}

void ProgramWriter::finish() {
  finish_modules();
  Graph& graph = program_.graph;
  std::vector<GraphNode> nodes;
  std::vector<size_t> place;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    place.push_back(nodes.size());
    if (!removed[i]) nodes.push_back(std::move(graph.nodes[i]));
    std::ranges::move(behind[i], std::back_inserter(nodes));
  }
  place.push_back(nodes.size());
  graph.nodes = std::move(nodes);
  for (CheckpointRegion& region : graph.checkpoints) {
    region.begin = place[region.begin];
    region.end = place[region.end];
  }
}

void ProgramWriter::finish_modules() {
  std::unordered_map<std::string, std::vector<std::string>> added;
  for (auto& [after, path] : modules_) added[after].push_back(std::move(path));
  std::vector<std::string> modules;
  for (std::string& path : program_.modules) {
    const auto found = added.find(path);
    modules.push_back(std::move(path));
    if (found == added.end()) continue;
    modules.insert(modules.end(), found->second.begin(), found->second.end());
  }
  program_.modules = std::move(modules);
  modules_.clear();
}

Operand operand_of(ValueId value, std::string name) {
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = value;
  operand.name = std::move(name);
  return operand;
}

Operand operand_of(Value constant, std::string name) {
  Operand operand;
  operand.constant = std::move(constant);
  operand.name = std::move(name);
  return operand;
}

Operand operand_of(std::vector<ValueId> values) {
  Operand operand;
  operand.kind = Operand::Kind::values;
  operand.values = std::move(values);
  return operand;
}

Operand operand_of(std::shared_ptr<const Graph> graph) {
  Operand operand;
  operand.kind = Operand::Kind::graph;
  operand.graph = std::move(graph);
  return operand;
}

GraphNode call_of(std::string op, std::vector<Operand> operands, ValueId result, int32_t modules,
                  int32_t source) {
  GraphNode node;
  node.op = std::move(op);
  node.operands = std::move(operands);
  node.targets.push_back({.list = false, .values = {result}});
  node.modules = modules;
  node.source = source;
  return node;
}

}  // namespace metaprof
