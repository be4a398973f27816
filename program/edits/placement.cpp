// What a module does with its weights when it is moved to the device follows their dtype: recurrent ones lie in one buffer
// where cuDNN takes their dtype (torch.nn.RNNBase.flatten_parameters), else each by itself. Operators' records know.

#include <algorithm>
#include <map>

#include "program/edits/rewriting.h"
#include "program/edits/variants.h"

namespace metaprof {
namespace {

constexpr std::string_view kFlatten = "aten::_cudnn_rnn_flatten_weight";

class PlacementChange {
 public:
  PlacementChange(Program& program, const Registry& registry)
      : graph_(program.graph), registry_(registry), kept_(graph_.nodes.size(), true) {}

  void run() {
    find();
    if (placed_.empty()) return;
    for (const auto& [weights, user] : placed_) replace(weights, user);
    insert();
  }

 private:
  // The lists of weights that operators want together, and the first call that takes each.
  void find() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Operator* op = registry_.find(graph_.nodes[i].op);
      if (!op || !op->record.facts.on_placement) continue;
      const int at = op->schema.find(name_hash("params"));
      const auto& operands = graph_.nodes[i].operands;
      if (at >= 0 && size_t(at) < operands.size() && operands[size_t(at)].kind == Operand::Kind::values)
        placed_.emplace(operands[size_t(at)].values, i);
    }
  }

  // The program's own call goes; the operator's rule takes its place, or stands where the last of the weights was moved.
  void replace(const std::vector<ValueId>& weights, size_t user) {
    size_t at = graph_.nodes.size();
    for (size_t i = 0; i < user; ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (node.operands.empty()) continue;
      const bool flattens = node.op == kFlatten && node.operands[0].values == weights;
      if (flattens) kept_[i] = false;
      if (flattens || (is_step(node, "set_data") && std::ranges::count(weights, node.operands[0].value) > 0))
        at = i;
    }
    if (at == graph_.nodes.size()) return;
    GraphNode node;
    node.op = "step::placed";
    node.operands = graph_.nodes[user].operands;
    for (Operand& operand : node.operands)
      if (operand.kind != Operand::Kind::constant && operand.values != weights) operand = Operand();
    node.operands.emplace(node.operands.begin())->constant = Value(graph_.nodes[user].op);
    node.drops = std::move(graph_.nodes[at].drops);
    for (const Target& target : graph_.nodes[at].targets)
      for (const ValueId value : target.values) std::erase(node.drops, value);
    inserted_.emplace(at, std::move(node));
  }

  void insert() {
    std::vector<GraphNode> nodes;
    std::vector<size_t> place;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      place.push_back(nodes.size());
      if (kept_[i]) nodes.push_back(std::move(graph_.nodes[i]));
      if (const auto found = inserted_.find(i); found != inserted_.end())
        nodes.push_back(std::move(found->second));
    }
    place.push_back(nodes.size());
    replace_nodes(graph_, std::move(nodes), place);
  }

  Graph& graph_;
  const Registry& registry_;
  std::vector<char> kept_;                         // per node
  std::map<std::vector<ValueId>, size_t> placed_;  // weights → node
  std::multimap<size_t, GraphNode> inserted_;      // behind which node
};

}  // namespace

void place_weights_again(Program& program, const Registry& registry) {
  PlacementChange(program, registry).run();
}

}  // namespace metaprof
