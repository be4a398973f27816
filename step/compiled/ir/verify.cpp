#include "step/compiled/ir/verify.h"

#include <fmt/format.h>

#include "core/error.h"
#include "program/visit.h"

namespace metaprof {
namespace {

class Verifier {
 public:
  Verifier(const Program& program, const Graph& graph)
      : program_(program), graph_(graph), state_(graph.values.size(), State::unmade) {}

  void verify() {
    for (const ValueId input : graph_.inputs)
      if (input != kNoValue) make(input, "the inputs");
    for (size_t i = 0; i < graph_.nodes.size(); ++i) verify_node(i);
    for (const Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId value) { take(value, "the outputs"); });
    size_t end = 0;
    for (const CheckpointRegion& region : graph_.checkpoints) {
      if (region.begin < end || region.end <= region.begin || region.end > graph_.nodes.size())
        wrong(fmt::format("the checkpointed nodes {} to {}", region.begin, region.end),
              "are none of the graph, or checkpointed twice");
      end = region.end;
    }
  }

 private:
  enum class State : uint8_t { unmade, made, dropped };

  void verify_node(size_t index) {
    const GraphNode& node = graph_.nodes[index];
    const std::string where = fmt::format("node {} ({})", index, node.op);
    for (const Operand& operand : node.operands) verify_operand(operand, where);
    if (node.dtype_of != kNoValue) take(node.dtype_of, where);
    for_each_result(node, [&](ValueId value) { make(value, where); });
    for (const ValueId value : node.drops) drop(value, where);
    verify_stack(node.modules, program_.module_stacks.size(), where);
    verify_stack(node.source, program_.source_stacks.size(), where);
  }

  void verify_operand(const Operand& operand, const std::string& where) {
    for_each_value(operand, [&](ValueId value) { take(value, where); });
    if (operand.kind == Operand::Kind::value && operand.value == kNoValue)
      wrong(where, "takes a value that is none");
    if (operand.kind == Operand::Kind::integers && operand.values.size() > operand.numbers.size())
      wrong(where, "takes a list of integers with more values than numbers");
    if (operand.kind != Operand::Kind::graph) return;
    if (!operand.graph) wrong(where, "takes a graph that is none");
    metaprof::verify(program_, *operand.graph);
  }

  void verify_stack(int32_t index, size_t count, const std::string& where) {
    if (index >= static_cast<int32_t>(count))
      wrong(where, "stands in a stack that the program does not have");
  }

  State& state_of(ValueId value, const std::string& where) {
    if (value < 0 || static_cast<size_t>(value) >= state_.size())
      wrong(where, fmt::format("names value {}, of which there are {}", value, state_.size()));
    return state_[static_cast<size_t>(value)];
  }
  void make(ValueId value, const std::string& where) {
    State& state = state_of(value, where);
    if (state != State::unmade) wrong(where, shown(value) + " was made before");
    state = State::made;
  }
  void take(ValueId value, const std::string& where) {
    const State state = state_of(value, where);
    if (state == State::unmade) wrong(where, shown(value) + " is taken before it is made");
    if (state == State::dropped) wrong(where, shown(value) + " is taken after it was dropped");
  }
  void drop(ValueId value, const std::string& where) {
    take(value, where);
    state_of(value, where) = State::dropped;
  }

  std::string shown(ValueId value) const {
    const std::string& name = graph_.values[static_cast<size_t>(value)].name;
    return name.empty() ? fmt::format("value {}", value) : "%" + name;
  }
  [[noreturn]] void wrong(const std::string& where, const std::string& what) const {
    fail("{}: {}: {}", program_.name, where, what);
  }

  const Program& program_;
  const Graph& graph_;
  std::vector<State> state_;
};

}  // namespace

void verify(const Program& program, const Graph& graph) { Verifier(program, graph).verify(); }

void verify(const Program& program) {
  const Graph& graph = program.graph;
  if (program.inputs.size() != graph.inputs.size() || program.outputs.size() != graph.outputs.size())
    fail("{}: the program has {} inputs and {} outputs, its graph {} and {}", program.name,
         program.inputs.size(), program.outputs.size(), graph.inputs.size(), graph.outputs.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (program.inputs[i].value != graph.inputs[i])
      fail("{}: input {} ({}) is another value in the graph", program.name, i, program.inputs[i].name);
  verify(program, graph);
}

}  // namespace metaprof
