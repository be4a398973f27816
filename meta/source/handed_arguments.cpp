#include "meta/source/handed_arguments.h"

#include <algorithm>

namespace metaprof {
namespace {

constexpr std::string_view kVariable = "position_ids";

class Hands {
 public:
  Hands(Program& program, const Graph& graph, const SourceFrames& source)
      : program_(program), graph_(graph), source_(source) {}

  // What stands before the calls of this node: in the layer, and in its attention, where they begin there.
  std::vector<GraphNode> before(size_t node) {
    const int32_t modules = graph_.nodes[node].modules;
    if (modules < 0) return {};
    const auto& stack = program_.module_stacks[size_t(modules)];
    const auto layer = std::ranges::find_if(stack, is_layer);
    if (layer == stack.end() || layer == stack.begin()) return {};
    const auto depth = size_t(layer - stack.begin());
    std::vector<size_t> begin;
    if (begins(node, depth)) begin.push_back(depth);
    if (depth + 1 < stack.size() && stack[depth + 1].path == layer->path + ".self_attn" &&
        begins(node, depth + 1))
      begin.push_back(depth + 1);
    const std::string& caller = stack[depth - 1].path;
    if (begin.empty() || !has_rotary_embedding(caller)) return {};
    const ValueId positions = variable_of_caller(node, caller);
    if (positions == kNoValue) return {};
    const std::vector<ModuleCall> whole = stack;  // adding stacks moves the list
    std::vector<GraphNode> handed;
    handed.reserve(begin.size());
    for (const size_t at : begin) handed.push_back(keep(positions, stack_up_to(whole, at)));
    return handed;
  }

 private:
  static bool is_layer(const ModuleCall& call) {
    return call.type.starts_with("transformers.") && call.type.ends_with("DecoderLayer");
  }

  static GraphNode keep(ValueId value, int32_t modules) {
    Operand operand;
    operand.kind = Operand::Kind::values;
    operand.values = {value};
    GraphNode node;
    node.op = "step::keep";
    node.operands = {std::move(operand)};
    node.modules = modules;
    return node;
  }

  // The node's module at this depth was not called yet in the node before.
  bool begins(size_t node, size_t depth) const {
    const int32_t modules = node == 0 ? -1 : graph_.nodes[node - 1].modules;
    if (modules < 0) return true;
    const auto& before = program_.module_stacks[size_t(modules)];
    const auto& stack = program_.module_stacks[size_t(graph_.nodes[node].modules)];
    return before.size() <= depth || before[depth] != stack[depth];
  }

  bool has_rotary_embedding(const std::string& caller) const {
    const std::string inside = caller.empty() ? "" : caller + ".";
    return std::ranges::any_of(program_.module_types, [&](const auto& module) {
      return module.first.starts_with(inside) && module.second.ends_with("RotaryEmbedding");
    });
  }

  // What the variable holds when the caller comes to this node, if it still does.
  ValueId variable_of_caller(size_t node, const std::string& caller) const {
    const CallSite& site = source_.sites[node];
    for (size_t level = site.frames.size(); level-- > 0;) {
      const Frame& frame = source_.frames[size_t(site.frames[level])];
      if (frame.module != caller) continue;
      ValueId value = kNoValue;
      for (const int statement : frame.statements) {
        if (statement == site.statements[level]) break;
        const Statement& one = source_.statements[size_t(statement)];
        if (std::ranges::find(one.names, kVariable) != one.names.end()) value = only_result(one.last_node);
      }
      return is_alive(value, node) ? value : kNoValue;
    }
    return kNoValue;
  }

  ValueId only_result(int node) const {
    const GraphNode& call = graph_.nodes[size_t(node)];
    return call.targets.size() == 1 && call.targets[0].values.size() == 1 ? call.targets[0].values[0]
                                                                          : kNoValue;
  }

  bool is_alive(ValueId value, size_t node) const {
    if (value == kNoValue) return false;
    return std::none_of(
        graph_.nodes.begin(), graph_.nodes.begin() + ptrdiff_t(node),
        [&](const GraphNode& call) { return std::ranges::find(call.drops, value) != call.drops.end(); });
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
  const Graph& graph_;
  const SourceFrames& source_;
};

}  // namespace

void hand_positions(Program& program, Graph& graph, const SourceFrames& source) {
  Hands hands(program, graph, source);
  std::vector<std::vector<GraphNode>> handed;
  for (size_t node = 0; node < graph.nodes.size(); ++node) handed.push_back(hands.before(node));
  std::vector<GraphNode> nodes;
  for (size_t node = 0; node < handed.size(); ++node) {
    std::ranges::move(handed[node], std::back_inserter(nodes));
    nodes.push_back(std::move(graph.nodes[node]));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace metaprof
