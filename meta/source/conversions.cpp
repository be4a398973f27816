#include "meta/source/conversions.h"

#include <algorithm>
#include <functional>

#include "meta/source/frames.h"

namespace metaprof {

bool is_conversion(const Operator& op) {
  const Schema& schema = op.schema;
  if (schema.returns.empty() || !schema.returns[0].alias) return false;
  return std::ranges::any_of(schema.arguments, [](const Argument& a) { return a.type == Type::dtype; });
}

namespace {

// The tensor that the call gave back unchanged while exporting; kNoValue if it is no such conversion.
ValueId unchanged(const Graph& graph, const GraphNode& node, const Registry& registry) {
  const Operator* op = registry.find(node.op);
  if (!op || !is_conversion(*op)) return kNoValue;
  if (node.operands.empty() || node.operands[0].kind != Operand::Kind::value) return kNoValue;
  const auto& before = graph.values[size_t(node.operands[0].value)].tensor;
  const auto& after = graph.values[size_t(node.targets.at(0).values.at(0))].tensor;
  const bool same = before && after && before->dtype == after->dtype && before->device == after->device;
  return same ? node.operands[0].value : kNoValue;
}

void for_each_value(Operand& operand, const std::function<void(ValueId&)>& visit) {
  if (operand.kind == Operand::Kind::value) visit(operand.value);
  for (ValueId& value : operand.values)
    if (value != kNoValue) visit(value);
}

class Conversions {
 public:
  Conversions(const Program& program, const Graph& graph, const Registry& registry)
      : graph_(graph),
        registry_(registry),
        source_(source_frames(program, graph)),
        original_(graph.values.size(), kNoValue) {}

  std::optional<Graph> undo() {
    if (!find()) return std::nullopt;
    Graph result = graph_;
    for (size_t node = 0; node < result.nodes.size(); ++node)
      for (Operand& operand : result.nodes[node].operands)
        for_each_value(operand, [&](ValueId& value) { value = seen_from(value, node); });
    return result;
  }

 private:
  bool find() {
    made_by_.assign(graph_.values.size(), 0);
    temporary_.assign(graph_.values.size(), false);
    bool any = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ValueId converted = unchanged(graph_, graph_.nodes[i], registry_);
      if (converted == kNoValue || source_.places[i].frames.empty()) continue;
      const auto result = size_t(graph_.nodes[i].targets[0].values[0]);
      temporary_[result] = is_temporary(i);
      if (!temporary_[result] && is_returned(i)) continue;
      original_[result] = converted;
      made_by_[result] = i;
      any = true;
    }
    return any;
  }

  // `variance = h.to(torch.float32).pow(2)`: another call of the statement takes it, and no name holds it.
  bool is_temporary(size_t node) const {
    const Place& place = source_.places[node];
    if (source_.statements[size_t(place.statements.back())].names.empty()) return false;
    const ValueId result = graph_.nodes[node].targets[0].values[0];
    for (size_t later = node + 1; later < graph_.nodes.size(); ++later) {
      const Place& other = source_.places[later];
      if (other.statements.size() < place.statements.size() ||
          other.statements[place.statements.size() - 1] != place.statements.back())
        return false;
      for (const Operand& operand : graph_.nodes[later].operands)
        if (operand.kind == Operand::Kind::value && operand.value == result) return true;
    }
    return false;
  }

  // The function returns it by this statement, or by a later one that names the variable, unless that has
  // been bound again by then. A return that makes no call leaves no trace: a variable that is never bound
  // again may be what it returns.
  bool is_returned(size_t node) const {
    const Place& place = source_.places[node];
    const Statement& made = source_.statements[size_t(place.statements.back())];
    if (made.names.empty()) return true;
    for (int later : source_.frames[size_t(place.frames.back())].statements) {
      if (later <= place.statements.back()) continue;
      const Statement& statement = source_.statements[size_t(later)];
      if (statement.code.starts_with("return")) return contains_word(statement.code, made.names[0]);
      if (std::ranges::find(statement.names, made.names[0]) != statement.names.end()) return false;
    }
    return true;
  }

  ValueId seen_from(ValueId value, size_t node) const {
    for (ValueId original = original_[size_t(value)]; original != kNoValue;
         original = original_[size_t(value)]) {
      const Place& maker = source_.places[made_by_[size_t(value)]];
      const bool temporary = temporary_[size_t(value)];
      const auto& here = temporary ? source_.places[node].statements : source_.places[node].frames;
      const int made_in = temporary ? maker.statements.back() : maker.frames.back();
      if (std::ranges::find(here, made_in) != here.end()) break;
      value = original;
    }
    return value;
  }

  const Graph& graph_;
  const Registry& registry_;
  const SourceFrames source_;
  std::vector<ValueId> original_;  // per value: what it was before the conversion that made it
  std::vector<size_t> made_by_;
  std::vector<bool> temporary_;  // it is used in its statement only
};

}  // namespace

std::optional<Graph> undo_conversions(const Program& program, const Graph& graph, const Registry& registry) {
  return Conversions(program, graph, registry).undo();
}

}  // namespace metaprof
