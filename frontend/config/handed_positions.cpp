#include "frontend/config/handed_positions.h"

#include <algorithm>
#include <map>

namespace metaprof::configs {
namespace {

class Handing {
 public:
  explicit Handing(Program& program) : program_(program), graph_(program.graph) {}

  void run() {
    std::vector<GraphNode> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      note_positions(graph_.nodes[i]);
      hand(i, nodes);
      nodes_before_ = graph_.nodes[i].modules;
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  const std::vector<ModuleCall>& stack_of(int32_t modules) const {
    return program_.module_stacks[static_cast<size_t>(modules)];
  }

  // Rotary embeddings read whole numbers: the positions, which the model around them holds.
  void note_positions(const GraphNode& node) {
    if (node.modules < 0) return;
    const std::vector<ModuleCall>& stack = stack_of(node.modules);
    if (stack.size() < 2 || !stack.back().type.ends_with("RotaryEmbedding")) return;
    for (const Operand& operand : node.operands) {
      if (operand.kind != Operand::Kind::value) continue;
      const auto& facts = graph_.values[static_cast<size_t>(operand.value)].tensor;
      if (facts && facts->dtype == DType::i64)
        positions_.emplace(stack[stack.size() - 2].path, operand.value);
    }
  }

  void hand(size_t index, std::vector<GraphNode>& nodes) {
    const int32_t modules = graph_.nodes[index].modules;
    if (modules < 0 || modules == nodes_before_ || positions_.empty()) return;
    const std::vector<ModuleCall>& stack = stack_of(modules);
    const auto layer = std::ranges::find_if(stack, [](const ModuleCall& call) {
      return call.type.starts_with("transformers.") && call.type.ends_with("DecoderLayer");
    });
    if (layer == stack.end() || layer == stack.begin()) return;
    const auto positions = positions_.find((layer - 1)->path);
    if (positions == positions_.end()) return;
    const auto depth = static_cast<size_t>(layer - stack.begin());
    if (begins(stack, depth)) nodes.push_back(keep(positions->second, modules, depth));
    if (depth + 1 < stack.size() && stack[depth + 1].path == layer->path + ".self_attn" &&
        begins(stack, depth + 1))
      nodes.push_back(keep(positions->second, modules, depth + 1));
  }

  // The module at this depth was not called yet in the node before.
  bool begins(const std::vector<ModuleCall>& stack, size_t depth) const {
    if (nodes_before_ < 0) return true;
    const std::vector<ModuleCall>& before = stack_of(nodes_before_);
    return before.size() <= depth || before[depth] != stack[depth];
  }

  // The module was entered before those inside it, so that its stack is an earlier one.
  GraphNode keep(ValueId positions, int32_t modules, size_t depth) const {
    const std::string& key = stack_of(modules)[depth].key;
    while (stack_of(modules).size() != depth + 1 || stack_of(modules).back().key != key) --modules;
    Operand operand;
    operand.kind = Operand::Kind::values;
    operand.values = {positions};
    GraphNode node;
    node.op = "step::keep";
    node.operands = {std::move(operand)};
    node.modules = modules;
    return node;
  }

  Program& program_;
  Graph& graph_;
  std::map<std::string, ValueId> positions_;  // by the path of the model that holds them
  int32_t nodes_before_ = -1;                 // the module stack of the node before
};

}  // namespace

void hand_positions(Program& program) { Handing(program).run(); }

}  // namespace metaprof::configs
