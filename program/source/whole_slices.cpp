#include "program/source/whole_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "program/source/subscripts.h"

namespace metaprof {
namespace {

constexpr std::string_view kSlice = "aten::slice.Tensor", kSelect = "aten::select.int",
                           kAlias = "aten::alias", kNewAxis = "aten::unsqueeze",
                           kIndex = "aten::index.Tensor";
constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();

bool is_indexing(const GraphNode& node) {
  constexpr std::string_view kOps[] = {kSlice, kSelect, kAlias, kNewAxis, kIndex};
  return std::ranges::find(kOps, node.op) != std::end(kOps) && !node.operands.empty() &&
         node.operands[0].kind == Operand::Kind::value && node.targets.size() == 1 &&
         node.targets[0].values.size() == 1;
}

// A constant integer that is passed by this name or at this place; `otherwise` if none is; nothing if it is
// no constant.
std::optional<int64_t> integer(const GraphNode& node, std::string_view name, size_t place,
                               int64_t otherwise) {
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Operand& operand = node.operands[i];
    if (operand.name.empty() ? i != place : operand.name != name) continue;
    if (operand.kind != Operand::Kind::constant) return {};
    if (operand.constant.is_none()) return otherwise;
    return operand.constant.kind() == Value::Kind::integer ? std::optional(operand.constant.integer())
                                                           : std::nullopt;
  }
  return otherwise;
}

bool is_whole_slice(const GraphNode& node) {
  return node.op == kSlice && is_indexing(node) && integer(node, "start", 2, 0) == 0 &&
         integer(node, "end", 3, kOpenEnd) == kOpenEnd && integer(node, "step", 4, 1) == 1;
}

/// What a subscript does: calls that are there, and slices that are missing.
struct Step {
  bool missing;
  int64_t dimension = 0;  // of a missing slice
};

// Fits the items of one subscript to the calls that it may have made. Python goes through them from left to
// right; what indexes by tensors is done at the end (TensorIndexing.h, dispatch_index).
class SubscriptMatch {
 public:
  /// `rank`: the number of dimensions of what is indexed; nothing: not known.
  SubscriptMatch(const Subscript& subscript, std::span<const GraphNode> chain, std::optional<int64_t> rank)
      : subscript_(subscript), chain_(chain), rank_(rank) {}

  /// Nothing: they do not fit.
  std::optional<std::vector<Step>> run() {
    for (const SubscriptItem item : subscript_)
      if (!take(item)) return {};
    if (by_tensors_ || (calls_ == 0 && next_is(kAlias))) take_call();
    return calls_ ? std::optional(std::move(steps_)) : std::nullopt;
  }

 private:
  bool take(SubscriptItem item) {
    switch (item) {
      case SubscriptItem::everything: return take_everything();
      case SubscriptItem::range:
        if (next_is(kSlice)) take_call();
        return ++dimension_;
      case SubscriptItem::new_axis: return next_is(kNewAxis) && take_call() && ++dimension_;
      case SubscriptItem::ellipsis: return take_ellipsis();
      case SubscriptItem::number: return next_is(kSelect) && take_call();
      case SubscriptItem::expression: return take_expression();
    }
    return false;
  }

  bool take_everything() {
    if (next_is(kSlice) && is_whole_slice(chain_[calls_]))
      take_call();
    else
      steps_.push_back({.missing = true, .dimension = dimension_});
    return ++dimension_;
  }

  bool take_ellipsis() {
    const auto takes = [](SubscriptItem item) {
      return item != SubscriptItem::ellipsis && item != SubscriptItem::new_axis;
    };
    if (rank_) dimension_ += *rank_ - std::ranges::count_if(subscript_, takes);
    return rank_.has_value();
  }

  // A number, a tensor, or a slice object, of which no trace is left if it took everything.
  bool take_expression() {
    if (next_is(kSelect)) return take_call();
    if (next_is(kIndex)) return by_tensors_ = true, ++dimension_;
    if (!next_is(kSlice)) return take_everything();
    return take_call() && ++dimension_;
  }

  bool next_is(std::string_view op) const {
    if (calls_ == chain_.size() || chain_[calls_].op != op) return false;
    return op == kAlias || op == kIndex || integer(chain_[calls_], "dim", 1, 0) == dimension_;
  }

  bool take_call() {
    ++calls_;
    steps_.push_back({.missing = false});
    return true;
  }

  const Subscript& subscript_;
  const std::span<const GraphNode> chain_;
  const std::optional<int64_t> rank_;
  int64_t dimension_ = 0;  // of what the calls so far have made
  size_t calls_ = 0;       // of the chain, that were taken
  bool by_tensors_ = false;
  std::vector<Step> steps_;
};

class SliceRestorer {
 public:
  SliceRestorer(const Program& program, Graph& graph) : program_(program), graph_(graph) {}

  void run() {
    std::vector<GraphNode> before = std::move(graph_.nodes);
    std::vector<size_t> place;  // of each node, among those that are now
    while (place.size() < before.size()) {
      const std::span<GraphNode> chain = chain_of(std::span(before).subspan(place.size()));
      const std::vector<Step> steps = steps_of(chain);
      const auto calls = static_cast<size_t>(std::ranges::count(steps, false, &Step::missing));
      const size_t taken = std::max<size_t>(calls, 1);
      place.insert(place.end(), taken, nodes_.size());
      if (calls < steps.size())
        restore(chain.first(taken), steps);
      else
        std::ranges::move(chain.first(taken), std::back_inserter(nodes_));
    }
    place.push_back(nodes_.size());
    for (CheckpointRegion& region : graph_.checkpoints) {
      region.begin = place[region.begin];
      region.end = place[region.end];
    }
    graph_.nodes = std::move(nodes_);
  }

 private:
  // The first of the nodes, and those of the same line that index what it has made.
  static std::span<GraphNode> chain_of(std::span<GraphNode> nodes) {
    size_t count = 1;
    const auto goes_on = [&](const GraphNode& node, const GraphNode& last) {
      return is_indexing(node) && node.source == last.source &&
             node.operands[0].value == last.targets[0].values[0];
    };
    if (is_indexing(nodes[0]))
      while (count < nodes.size() && goes_on(nodes[count], nodes[count - 1])) ++count;
    return nodes.first(count);
  }

  // Empty: the calls are those of no subscript.
  std::vector<Step> steps_of(std::span<const GraphNode> chain) {
    if (!is_indexing(chain[0]) || chain[0].source < 0) return {};
    const auto& stack = program_.source_stacks[size_t(chain[0].source)];
    if (stack.empty()) return {};
    const std::string_view code = stack.back().code;
    auto known = subscripts_.find(code);
    if (known == subscripts_.end()) known = subscripts_.emplace(code, subscripts_in(code)).first;
    const auto& indexed = graph_.values[size_t(chain[0].operands[0].value)].tensor;
    const auto rank = indexed ? std::optional(static_cast<int64_t>(indexed->sizes.size())) : std::nullopt;
    for (const Subscript& subscript : known->second)
      if (auto steps = SubscriptMatch(subscript, chain, rank).run()) return *steps;
    return {};
  }

  // The calls with the missing slices; the last of all makes what the last call made. An alias is what was
  // left where nothing but slices was missing.
  void restore(std::span<GraphNode> calls, std::vector<Step> steps) {
    const ValueId result = calls.back().targets[0].values[0];
    const std::vector<ValueId> drops = std::exchange(calls.back().drops, {});
    if (calls[0].op == kAlias) std::erase_if(steps, [](const Step& step) { return !step.missing; });
    ValueId taken = calls[0].operands[0].value;
    bool temporary = false;  // nobody but the next step takes it
    for (size_t i = 0, call = 0; i < steps.size(); ++i) {
      GraphNode node = steps[i].missing ? slice(calls[0], steps[i].dimension) : std::move(calls[call++]);
      const bool last_call = call == calls.size();
      node.operands[0].value = taken;
      if (temporary) node.drops.push_back(taken);
      temporary = steps[i].missing || last_call;
      if (i + 1 == steps.size())
        taken = result;
      else if (temporary)
        taken = copy_of(steps[i].missing ? taken : result);
      else
        taken = node.targets[0].values[0];
      node.targets[0].values = {taken};
      nodes_.push_back(std::move(node));
    }
    nodes_.back().drops.insert(nodes_.back().drops.end(), drops.begin(), drops.end());
  }

  static GraphNode slice(const GraphNode& like, int64_t dimension) {
    const auto number = [](const char* name, int64_t value) {
      Operand operand;
      operand.name = name;
      operand.constant = Value(value);
      return operand;
    };
    Operand self;
    self.kind = Operand::Kind::value;
    self.name = "self";
    GraphNode node;
    node.op = kSlice;
    node.operands = {std::move(self), number("dim", dimension), number("start", 0), number("end", kOpenEnd)};
    node.targets = {{.list = false, .values = {kNoValue}}};
    node.modules = like.modules;
    node.source = like.source;
    node.without_autocast = like.without_autocast;
    return node;
  }

  // A value like that one: all of a dimension is as large as the dimension.
  ValueId copy_of(ValueId value) {
    ValueFacts facts = graph_.values[size_t(value)];
    facts.name = fmt::format("{}_whole_{}", facts.name, graph_.values.size());
    graph_.values.push_back(std::move(facts));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  const Program& program_;
  Graph& graph_;
  std::vector<GraphNode> nodes_;
  std::map<std::string_view, std::vector<Subscript>> subscripts_;  // by line
};

// Calls `change` with the graph and those inside it, which are copied: programs share them.
template <class Change>
void for_each_graph(Graph& graph, const Change& change) {
  change(graph);
  for (GraphNode& node : graph.nodes)
    for (Operand& operand : node.operands) {
      if (!operand.graph) continue;
      auto inner = std::make_shared<Graph>(*operand.graph);
      for_each_graph(*inner, change);
      operand.graph = std::move(inner);
    }
}

}  // namespace

bool has_whole_slices(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& node) {
    return is_whole_slice(node) || std::ranges::any_of(node.operands, [](const Operand& operand) {
             return operand.graph && has_whole_slices(*operand.graph);
           });
  });
}

Program with_whole_slices(Program program) {
  for_each_graph(program.graph, [&](Graph& graph) { SliceRestorer(program, graph).run(); });
  return program;
}

Program without_whole_slices(Program program) {
  for_each_graph(program.graph, [](Graph& graph) {
    for (GraphNode& node : graph.nodes) {
      if (!is_whole_slice(node)) continue;
      node.op = kAlias;
      node.operands.resize(1);
    }
  });
  return program;
}

}  // namespace metaprof
