#include "graph/cudagraphs/step_tree.h"

#include <algorithm>
#include <set>

#include "meta/program/program.h"

namespace metaprof {
namespace {

// Gives addresses, and computes nothing. A function has one output.
class Addresses final : public GraphRunner {
 public:
  MemoryHandle make() { return std::make_shared<const GraphMemory>(GraphMemory{++last_}); }
  MemoryHandles run_eagerly(FunctionId, MemoryHandles) override { return {make()}; }
  MemoryHandles warm_up(FunctionId, MemoryHandles) override { return {make()}; }
  MemoryHandles record(GraphNodeId node, FunctionId, MemoryHandles, const std::vector<bool>&) override {
    const MemoryHandle output = make();
    outputs_[node] = output->address;
    return {output};
  }
  MemoryHandles replay(GraphNodeId node, MemoryHandles) override {
    return {std::make_shared<const GraphMemory>(GraphMemory{outputs_.at(node)})};
  }
  void resume(GraphNodeId, const std::vector<uint64_t>&) override {}
  void overwrite(const std::vector<uint64_t>&) override {}

 private:
  uint64_t last_ = 0;
  std::map<GraphNodeId, uint64_t> outputs_;
};

void note_values(const Graph& graph, std::set<ValueId>& used) {
  const auto note = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::value) used.insert(operand.value);
    if (operand.kind == Operand::Kind::values) used.insert(operand.values.begin(), operand.values.end());
  };
  for (const GraphNode& node : graph.nodes) std::ranges::for_each(node.operands, note);
  std::ranges::for_each(graph.outputs, note);
}

// Tensors that some call takes. A tied parameter is one input for each name by which it is taken.
size_t inputs_of(const Program& program) {
  std::set<ValueId> used;
  note_values(program.graph, used);
  size_t inputs = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const ValueId value = program.graph.inputs[i];
    if (value == kNoValue || program.inputs[i].kind == ProgramInput::Kind::constant) continue;
    if (used.contains(value)) ++inputs;
  }
  return inputs;
}

}  // namespace

StepTree run_tree(const Program& program, const CaptureVerdict& forward, const CaptureVerdict& backward,
                  int steps) {
  StepTree result;
  result.steps = steps;
  if (!forward.captured()) {
    result.skips = 1;
    return result;
  }
  if (!backward.captured()) result.skips = 1;
  Addresses addresses;
  GraphTree tree(addresses);
  const size_t inputs = inputs_of(program);
  const FunctionId first =
      tree.add({.part = GraphFunction::Part::forward, .inputs = inputs, .fixed = {}, .written = {}});
  // What the forward keeps for it, and the gradient that comes in.
  const FunctionId second =
      tree.add({.part = GraphFunction::Part::backward, .inputs = 2, .fixed = {}, .written = {}});
  for (int step = 0; step < steps; ++step) {
    tree.begin_generation();
    MemoryHandles given;
    for (size_t i = 0; i < inputs; ++i) given.push_back(addresses.make());
    MemoryHandles kept = tree.run(first, std::move(given));
    kept.push_back(addresses.make());
    if (backward.captured()) tree.run(second, std::move(kept));
  }
  result.counters = tree.counters();
  result.nodes = tree.nodes();
  return result;
}

}  // namespace metaprof
