#include "step/cudagraphs/mutations.h"

#include <algorithm>
#include <map>

#include "core/shape.h"
#include "meta/op/registry.h"
#include "program/program.h"

namespace metaprof {
namespace {

constexpr int32_t kNoInput = -1;
using Roots = std::vector<int32_t>;  // per value: the input of the program whose memory it looks into

// Statistics that an operator updates while it trains, although its schema does not say that it writes them
// (aten/src/ATen/native/native_functions.yaml: batch_norm, cudnn_batch_norm, instance_norm).
constexpr std::string_view kKeptStatistics[] = {"running_mean", "running_var"};
constexpr std::string_view kUpdatesStatistics[] = {"training", "train", "use_input_stats"};

const Operand* operand_of(const Schema& schema, const GraphNode& node, size_t argument) {
  const std::string& name = schema.arguments[argument].name;
  size_t position = 0;
  for (const Operand& operand : node.operands) {
    if (operand.name.empty() ? position++ == argument : operand.name == name) return &operand;
  }
  return nullptr;
}

bool is_true(const Schema& schema, const GraphNode& node, size_t argument) {
  const Operand* operand = operand_of(schema, node, argument);
  return operand != nullptr && operand->kind == Operand::Kind::constant &&
         operand->constant.kind() == Value::Kind::boolean && operand->constant.boolean();
}

bool updates_statistics(const Schema& schema, const GraphNode& node) {
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    if (std::ranges::find(kUpdatesStatistics, schema.arguments[i].name) != std::end(kUpdatesStatistics))
      return is_true(schema, node, i);
  return false;
}

bool is_written(const Schema& schema, const GraphNode& node, size_t argument) {
  const Argument& facts = schema.arguments[argument];
  if (facts.written) return true;
  const bool kept = std::ranges::find(kKeptStatistics, facts.name) != std::end(kKeptStatistics);
  return kept && updates_statistics(schema, node);
}

bool row_major(const TensorFacts& facts) {
  const Sizes usual = contiguous_strides(facts.sizes);
  for (size_t i = 0; i < facts.sizes.size(); ++i)
    if (facts.sizes[i] != 1 && facts.strides[i] != usual[i]) return false;
  return true;
}

// Whether a result that may be a view or a copy (reshape, contiguous, to) is a view. A copy is row-major and has
// the whole of its memory; so is a view of what is row-major itself.
bool is_view(const Operator& op, const ValueFacts& of, const ValueFacts& result) {
  if (op.record.facts.view || op.writes || !of.tensor || !result.tensor) return true;
  if (of.tensor->dtype != result.tensor->dtype || of.tensor->device != result.tensor->device) return false;
  return row_major(*of.tensor) || !row_major(*result.tensor);
}

class Walk {
 public:
  Walk(const Program& program, const Registry& registry) : program_(program), registry_(registry) {}

  std::vector<Mutation> run() {
    Roots roots(program_.graph.values.size(), kNoInput);
    for (size_t i = 0; i < program_.graph.inputs.size(); ++i)
      if (program_.graph.inputs[i] != kNoValue)
        roots[static_cast<size_t>(program_.graph.inputs[i])] = static_cast<int32_t>(owner_of(i));
    walk(program_.graph, roots);
    std::vector<Mutation> mutations;
    for (const auto& [input, node] : writers_) mutations.push_back({static_cast<size_t>(input), node});
    return mutations;
  }

 private:
  // Tied parameters are one.
  size_t owner_of(size_t input) const {
    const int tied = program_.inputs[input].tied_to;
    return tied >= 0 ? static_cast<size_t>(tied) : input;
  }

  void walk(const Graph& graph, Roots& roots) {
    for (const GraphNode& node : graph.nodes) {
      if (const Operator* op = registry_.find(node.op)) {
        pass(graph, *op, node, roots);
      } else {
        enter(node, roots);
      }
    }
  }

  void pass(const Graph& graph, const Operator& op, const GraphNode& node, Roots& roots) {
    const Schema& schema = op.schema;
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const Operand* operand = operand_of(schema, node, i);
      if (operand == nullptr) continue;
      if (is_written(schema, node, i)) write(*operand, node, roots);
      if (!schema.arguments[i].alias) continue;
      for (size_t r = 0; r < schema.returns.size() && r < node.targets.size(); ++r) {
        if (!schema.returns[r].alias || schema.returns[r].alias_set != schema.arguments[i].alias_set)
          continue;
        look_into(graph, op, *operand, node.targets[r], roots);
      }
    }
  }

  void write(const Operand& operand, const GraphNode& node, const Roots& roots) {
    const auto note = [&](ValueId value) {
      if (value == kNoValue) return;
      const int32_t root = roots[static_cast<size_t>(value)];
      if (root != kNoInput) writers_.emplace(root, &node);
    };
    if (operand.kind == Operand::Kind::value) note(operand.value);
    if (operand.kind == Operand::Kind::values) std::ranges::for_each(operand.values, note);
  }

  static void look_into(const Graph& graph, const Operator& op, const Operand& operand, const Target& target,
                        Roots& roots) {
    const bool pairs = operand.kind == Operand::Kind::values;
    if (!pairs && operand.kind != Operand::Kind::value) return;
    for (size_t i = 0; i < target.values.size(); ++i) {
      if (pairs && i >= operand.values.size()) break;
      const ValueId of = pairs ? operand.values[i] : operand.value, result = target.values[i];
      if (of == kNoValue || result == kNoValue) continue;
      if (is_view(op, graph.values[static_cast<size_t>(of)], graph.values[static_cast<size_t>(result)]))
        roots[static_cast<size_t>(result)] = roots[static_cast<size_t>(of)];
    }
  }

  // A graph inside the graph: its inputs are the values that the call passes behind it.
  void enter(const GraphNode& node, const Roots& roots) {
    for (size_t g = 0; g < node.operands.size(); ++g) {
      if (node.operands[g].kind != Operand::Kind::graph) continue;
      const Graph& body = *node.operands[g].graph;
      Roots inside(body.values.size(), kNoInput);
      size_t next = 0;
      for (size_t i = g + 1; i < node.operands.size() && next < body.inputs.size(); ++i) {
        const Operand& passed = node.operands[i];
        if (!passed.name.empty() || passed.kind != Operand::Kind::value) continue;
        const ValueId input = body.inputs[next++];
        if (input != kNoValue) inside[static_cast<size_t>(input)] = roots[static_cast<size_t>(passed.value)];
      }
      walk(body, inside);
    }
  }

  const Program& program_;
  const Registry& registry_;
  std::map<int32_t, const GraphNode*> writers_;  // by input
};

}  // namespace

std::vector<Mutation> input_mutations(const Program& program, const Registry& registry) {
  return Walk(program, registry).run();
}

}  // namespace metaprof
