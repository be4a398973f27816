#include "program/handed_positions.h"

#include <algorithm>
#include <map>
#include <set>

namespace metaprof {
namespace {

class Handing {
 public:
  explicit Handing(Program& program) : program_(program), graph_(program.graph) {}

  void run() {
    if (!std::ranges::any_of(program_.module_types,
                             [](const auto& module) { return is_decoder_layer(module.second); }))
      return;
    std::vector<GraphNode> nodes;
    nodes.reserve(graph_.nodes.size());
    for (GraphNode& node : graph_.nodes) {
      note_positions(node);
      if (node.modules >= 0 && node.modules != modules_before_) hand(node.modules, nodes);
      modules_before_ = node.modules;
      dropped_.insert(node.drops.begin(), node.drops.end());
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  static bool is_decoder_layer(std::string_view type) {
    return type.starts_with("transformers.") && type.ends_with("DecoderLayer");
  }

  const std::vector<ModuleCall>& stack_of(int32_t modules) const {
    return program_.module_stacks[size_t(modules)];
  }

  // Rotary embeddings read whole numbers: the positions, which the model around them holds.
  void note_positions(const GraphNode& node) {
    if (node.modules < 0) return;
    const std::vector<ModuleCall>& stack = stack_of(node.modules);
    if (stack.size() < 2 || !stack.back().type.ends_with("RotaryEmbedding")) return;
    for (const Operand& operand : node.operands) {
      if (operand.kind != Operand::Kind::value) continue;
      const auto& facts = graph_.values[size_t(operand.value)].tensor;
      if (facts && facts->dtype == DType::i64)
        positions_.emplace(stack[stack.size() - 2].path, operand.value);
    }
  }

  // To the layer whose calls begin here, and to its attention, if its calls do.
  void hand(int32_t modules, std::vector<GraphNode>& nodes) {
    const std::vector<ModuleCall> stack = stack_of(modules);  // adding stacks moves the list
    const auto layer =
        std::ranges::find_if(stack, [](const ModuleCall& call) { return is_decoder_layer(call.type); });
    if (layer == stack.end() || layer == stack.begin()) return;
    const auto positions = positions_.find((layer - 1)->path);
    if (positions == positions_.end() || dropped_.contains(positions->second)) return;
    const auto depth = size_t(layer - stack.begin());
    if (begins(stack, depth)) nodes.push_back(keep(positions->second, stack, depth));
    if (depth + 1 < stack.size() && stack[depth + 1].path == layer->path + ".self_attn" &&
        begins(stack, depth + 1))
      nodes.push_back(keep(positions->second, stack, depth + 1));
  }

  // The module at this depth was not called yet in the node before.
  bool begins(const std::vector<ModuleCall>& stack, size_t depth) const {
    if (modules_before_ < 0) return true;
    const std::vector<ModuleCall>& before = stack_of(modules_before_);
    return before.size() <= depth || before[depth] != stack[depth];
  }

  GraphNode keep(ValueId positions, const std::vector<ModuleCall>& stack, size_t depth) {
    Operand operand;
    operand.kind = Operand::Kind::values;
    operand.values = {positions};
    GraphNode node;
    node.op = "step::keep";
    node.operands = {std::move(operand)};
    node.modules = stack_up_to(stack, depth);
    return node;
  }

  int32_t stack_up_to(const std::vector<ModuleCall>& stack, size_t depth) {
    const std::vector<ModuleCall> outer(stack.begin(), stack.begin() + ptrdiff_t(depth) + 1);
    auto& stacks = program_.module_stacks;
    const auto known = std::ranges::find(stacks, outer);
    const auto index = static_cast<int32_t>(known - stacks.begin());
    if (known == stacks.end()) stacks.push_back(outer);
    return index;
  }

  Program& program_;
  Graph& graph_;
  std::map<std::string, ValueId> positions_;  // by the path of the model that holds them
  std::set<ValueId> dropped_;
  int32_t modules_before_ = -1;  // of the node before
};

}  // namespace

void hand_positions(Program& program) { Handing(program).run(); }

}  // namespace metaprof
