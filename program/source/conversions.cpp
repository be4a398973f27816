#include "program/source/conversions.h"

#include <algorithm>

#include "program/visit.h"

namespace metaprof {

bool is_conversion(const Operator& op) {
  const Schema& schema = op.schema;
  if (schema.returns.empty() || !schema.returns[0].alias) return false;
  return std::ranges::any_of(schema.arguments, [](const Argument& a) { return a.type == Type::dtype; });
}

namespace {

// The tensor that the call gave back unchanged while exporting; kNoValue: it is no such call.
ValueId unchanged(const Graph& graph, const GraphNode& node, const Registry& registry) {
  const Operator* op = registry.find(node.op);
  if (!op || !(is_conversion(*op) || node.op == "aten::contiguous")) return kNoValue;
  if (node.operands.empty() || node.operands[0].kind != Operand::Kind::value) return kNoValue;
  const ValueId result = first_result(node);
  if (result == kNoValue) return kNoValue;
  const auto& before = graph.values[size_t(node.operands[0].value)].tensor;
  const auto& after = graph.values[size_t(result)].tensor;
  const bool same = before && after && before->dtype == after->dtype && before->device == after->device &&
                    (is_conversion(*op) || before->strides == after->strides);
  return same ? node.operands[0].value : kNoValue;
}

class Conversions {
 public:
  Conversions(Graph& graph, const SourceFrames& source, const Registry& registry)
      : graph_(graph), registry_(registry), source_(source), original_(graph.values.size(), kNoValue) {}

  void undo() {
    if (!find()) return;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      for_each_argument(graph_.nodes[node], [&](ValueId& value) { value = seen_from(value, node); });
  }

 private:
  bool find() {
    made_by_.assign(graph_.values.size(), 0);
    temporary_.assign(graph_.values.size(), false);
    bool any = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ValueId converted = unchanged(graph_, graph_.nodes[i], registry_);
      if (converted == kNoValue || source_.sites[i].frames.empty()) continue;
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
    const CallSite& site = source_.sites[node];
    if (source_.statements[size_t(site.statements.back())].names.empty()) return false;
    const ValueId result = graph_.nodes[node].targets[0].values[0];
    for (size_t later = node + 1; later < graph_.nodes.size(); ++later) {
      const CallSite& other = source_.sites[later];
      if (other.statements.size() < site.statements.size() ||
          other.statements[site.statements.size() - 1] != site.statements.back())
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
    const CallSite& site = source_.sites[node];
    const Statement& made = source_.statements[size_t(site.statements.back())];
    if (made.names.empty()) return true;
    for (int later : source_.frames[size_t(site.frames.back())].statements) {
      if (later <= site.statements.back()) continue;
      const Statement& statement = source_.statements[size_t(later)];
      if (statement.code.starts_with("return")) return contains_word(statement.code, made.names[0]);
      if (std::ranges::find(statement.names, made.names[0]) != statement.names.end()) return false;
    }
    return true;
  }

  ValueId seen_from(ValueId value, size_t node) const {
    for (ValueId original = original_[size_t(value)]; original != kNoValue;
         original = original_[size_t(value)]) {
      const CallSite& maker = source_.sites[made_by_[size_t(value)]];
      const bool temporary = temporary_[size_t(value)];
      const auto& here = temporary ? source_.sites[node].statements : source_.sites[node].frames;
      const int made_in = temporary ? maker.statements.back() : maker.frames.back();
      if (std::ranges::find(here, made_in) != here.end()) break;
      value = original;
    }
    return value;
  }

  Graph& graph_;
  const Registry& registry_;
  const SourceFrames& source_;
  std::vector<ValueId> original_;  // per value: what it was before the conversion that made it
  std::vector<size_t> made_by_;
  std::vector<bool> temporary_;  // it is used in its statement only
};

}  // namespace

void undo_conversions(Graph& graph, const SourceFrames& source, const Registry& registry) {
  Conversions(graph, source, registry).undo();
}

}  // namespace metaprof
