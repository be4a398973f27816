#include "program/source/even_shares.h"

#include <fmt/format.h>

#include "core/shape.h"
#include "program/def_use.h"
#include "program/symbols.h"
#include "program/visit.h"

namespace metaprof {
namespace {

class EvenShares {
 public:
  EvenShares(const Program& program, const Registry& registry)
      : program_(program), graph_(program.graph), registry_(registry), def_use_(graph_) {}

  // Values for symbols, each with what is assumed.
  std::map<std::string, std::pair<int64_t, std::string>> find() const {
    std::map<std::string, std::pair<int64_t, std::string>> found;
    for (const GraphNode& node : graph_.nodes) {
      const std::string symbol = counted_symbol(node);
      if (symbol.empty() || found.contains(symbol)) continue;
      const ValueId mask = mask_of(node);
      const int64_t parts = mask == kNoValue ? 0 : parts_of(mask);
      if (parts < 2) continue;
      const int64_t all = numel(facts(mask)->sizes), share = (all + parts - 1) / parts;
      found[symbol] = {share,
                       fmt::format("the size {} depends on data: {} is taken, one of {} even shares of {}; "
                                   "give another with --set {}=VALUE",
                                   symbol, share, parts, all, symbol)};
    }
    return found;
  }

 private:
  const TensorFacts* facts(ValueId value) const {
    const auto& tensor = graph_.values[size_t(value)].tensor;
    return tensor ? &*tensor : nullptr;
  }

  // The assumed symbol that is the first size of what the call finds; empty: there is none.
  std::string counted_symbol(const GraphNode& node) const {
    std::string symbol;
    for_each_result(node, [&](ValueId value) {
      const TensorFacts* tensor = facts(value);
      if (!symbol.empty() || !tensor || tensor->size_expressions.empty() || tensor->size_expressions[0] < 0)
        return;
      const Expression& size = *program_.expressions[size_t(tensor->size_expressions[0])].expression;
      if (size.kind == Expression::Kind::symbol && program_.assumed.contains(size.name)) symbol = size.name;
    });
    const Operator* op = registry_.find(node.op);
    const bool counts = op && (op->record.facts.reads_data || mask_among(node) != kNoValue);
    return counts ? symbol : "";
  }

  ValueId mask_among(const GraphNode& node) const {
    ValueId mask = kNoValue;
    for_each_argument(node, [&](ValueId value) {
      if (mask == kNoValue && facts(value) && facts(value)->dtype == DType::b8) mask = value;
    });
    return mask;
  }

  // What is looked through: a mask among the arguments, or the only tensor.
  ValueId mask_of(const GraphNode& node) const {
    const ValueId mask = mask_among(node);
    return mask != kNoValue ? mask : only_tensor(node);
  }

  ValueId only_tensor(const GraphNode& node) const {
    ValueId only = kNoValue;
    int tensors = 0;
    for_each_argument(node, [&](ValueId value) {
      if (!facts(value)) return;
      only = value;
      ++tensors;
    });
    return tensors == 1 ? only : kNoValue;
  }

  // One of how many elements is not 0, or equals a number; 0: it is not known. Views and functions of single
  // elements look at what they are made from.
  int64_t parts_of(ValueId value) const {
    constexpr int kMostSteps = 32;
    for (int step = 0; step < kMostSteps; ++step) {
      const int32_t maker = def_use_.maker(value);
      if (maker == kNoNode) return 0;
      const GraphNode& node = graph_.nodes[size_t(maker)];
      const Operator* op = registry_.find(node.op);
      if (!op) return 0;
      const TensorFacts& made = *facts(value);
      if (op->record.facts.one_of_last) return made.sizes.empty() ? 0 : made.sizes.back();
      if (op->record.facts.places_in_last && !is_floating(made.dtype)) return last_size_of_first(node);
      const ValueId from = only_tensor(node);
      if (from == kNoValue) return 0;
      if (!op->record.facts.view && numel(facts(from)->sizes) != numel(made.sizes)) return 0;
      value = from;
    }
    return 0;
  }

  int64_t last_size_of_first(const GraphNode& node) const {
    if (node.operands.empty() || node.operands[0].kind != Operand::Kind::value) return 0;
    const TensorFacts* tensor = facts(node.operands[0].value);
    return tensor && !tensor->sizes.empty() ? tensor->sizes.back() : 0;
  }

  const Program& program_;
  const Graph& graph_;
  const Registry& registry_;
  const DefUse def_use_;
};

}  // namespace

void assume_even_shares(Program& program, const Registry& registry) {
  if (program.assumed.empty()) return;
  const auto found = EvenShares(program, registry).find();
  SymbolValues values;
  for (const auto& [symbol, share] : found) {
    const SymbolRange& range = program.ranges[symbol];
    if (range.least.value_or(0) <= share.first && share.first <= range.most.value_or(share.first))
      values[symbol] = share.first;
  }
  if (values.empty()) return;
  bind_symbols(program, values);
  for (const auto& [symbol, value] : values) program.assumed[symbol] = found.at(symbol).second;
}

}  // namespace metaprof
