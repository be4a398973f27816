#include "tests/fuzz/shrink_program.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "program/text/text.h"
#include "program/visit.h"

namespace metaprof {
namespace {

using Flags = std::vector<bool>;  // by ValueId

void mark_arguments(const GraphNode& node, Flags& flags) {
  for_each_argument(node, [&](ValueId value) { flags[size_t(value)] = true; });
}

// Nothing names a value that is not made any more, or made too late.
void forget_missing(Program& program) {
  Graph& graph = program.graph;
  Flags made(graph.values.size());
  for (const ValueId input : graph.inputs)
    if (input != kNoValue) made[size_t(input)] = true;
  for (GraphNode& node : graph.nodes) {
    for_each_result(node, [&](ValueId value) { made[size_t(value)] = true; });
    std::erase_if(node.drops, [&](ValueId value) { return !made[size_t(value)]; });
    node.keeps.clear();
    if (node.dtype_of != kNoValue && !made[size_t(node.dtype_of)]) node.dtype_of = kNoValue;
  }
  for (size_t i = graph.outputs.size(); i-- > 0;) {
    bool missing = false;
    for_each_value(graph.outputs[i], [&](ValueId value) { missing = missing || !made[size_t(value)]; });
    if (!missing) continue;
    graph.outputs.erase(graph.outputs.begin() + static_cast<std::ptrdiff_t>(i));
    program.outputs.erase(program.outputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  graph.guesses.clear();
}

// The nodes up to `end`.
Program without_end(Program program, size_t end) {
  auto& nodes = program.graph.nodes;
  nodes.resize(end);
  std::erase_if(program.graph.checkpoints, [&](const CheckpointRegion& region) { return region.end > end; });
  forget_missing(program);
  return program;
}

// The nodes whose results the last one, or an output, needs.
Program only_needed(Program program) {
  Graph& graph = program.graph;
  Flags needed(graph.values.size());
  for (const Operand& output : graph.outputs)
    for_each_value(output, [&](ValueId value) { needed[size_t(value)] = true; });
  std::vector<GraphNode> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    bool keep = i + 1 == graph.nodes.size();
    for_each_result(graph.nodes[i], [&](ValueId value) { keep = keep || needed[size_t(value)]; });
    if (!keep) continue;
    mark_arguments(graph.nodes[i], needed);
    kept.push_back(std::move(graph.nodes[i]));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  graph.checkpoints.clear();
  forget_missing(program);
  return program;
}

// What the nodes before `begin` make for those behind it becomes inputs.
Program without_begin(Program program, size_t begin) {
  Graph& graph = program.graph;
  Flags used(graph.values.size());
  for (size_t i = begin; i < graph.nodes.size(); ++i) mark_arguments(graph.nodes[i], used);
  for (size_t i = 0; i < begin; ++i) {
    for_each_result(graph.nodes[i], [&](ValueId value) {
      const ValueFacts& facts = graph.values[size_t(value)];
      if (!used[size_t(value)] || !facts.tensor) return;
      graph.inputs.push_back(value);
      ProgramInput& input = program.inputs.emplace_back();
      input.value = value;
      input.name = "made_" + std::to_string(value);
    });
  }
  graph.nodes.erase(graph.nodes.begin(), graph.nodes.begin() + static_cast<std::ptrdiff_t>(begin));
  graph.checkpoints.clear();
  forget_missing(program);
  return program;
}

Program without_unused_inputs(Program program) {
  Graph& graph = program.graph;
  Flags used(graph.values.size());
  for (const GraphNode& node : graph.nodes) mark_arguments(node, used);
  for (const Operand& output : graph.outputs)
    for_each_value(output, [&](ValueId value) { used[size_t(value)] = true; });
  for (size_t i = graph.inputs.size(); i-- > 0;) {
    if (graph.inputs[i] != kNoValue && used[size_t(graph.inputs[i])]) continue;
    graph.inputs.erase(graph.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    program.inputs.erase(program.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (ProgramInput& input : program.inputs) input.tied_to = -1;
  forget_missing(program);
  return program;
}

class Shrinker {
 public:
  Shrinker(HostileCase hostile, const Findings::Fails& fails) : hostile_(std::move(hostile)), fails_(fails) {}

  HostileCase shrink() {
    const Program whole = read_case(hostile_);
    if (hostile_.ending != ".mp" && !keep_if_fails(whole)) return hostile_;
    cut(without_end, true);
    keep_if_fails(only_needed(program()));
    cut(without_begin, false);
    keep_if_fails(only_needed(program()));
    keep_if_fails(without_unused_inputs(program()));
    return hostile_;
  }

 private:
  static constexpr int kMostTrials = 60;

  Program program() const { return read_case(hostile_); }

  bool keep_if_fails(const Program& less) {
    if (++trials_ > kMostTrials) return false;
    HostileCase next = hostile_;
    next.ending = ".mp";
    next.bytes = to_text(less);
    if (!fails_(next)) return false;
    hostile_ = std::move(next);
    return true;
  }

  // Steps of half of what is left.
  template <class Cut>
  void cut(Cut less, bool from_the_end) {
    for (size_t step = program().graph.nodes.size() / 2; step > 0; step /= 2) {
      while (true) {
        Program now = program();
        const size_t count = now.graph.nodes.size();
        if (count <= step || !keep_if_fails(less(std::move(now), from_the_end ? count - step : step))) break;
      }
    }
  }

  HostileCase hostile_;
  const Findings::Fails& fails_;
  int trials_ = 0;
};

}  // namespace

HostileCase shrink_program(HostileCase hostile, const Findings::Fails& fails) {
  try {
    return Shrinker(hostile, fails).shrink();
  } catch (const Error&) {
    return hostile;  // it cannot be read: there are no calls to leave out
  }
}

}  // namespace metaprof
