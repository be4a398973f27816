#include "program/def_use.h"

#include "program/visit.h"

namespace metaprof {

DefUse::DefUse(const Graph& graph) : makers_(graph.values.size()), begins_(graph.values.size() + 1) {
  const auto nodes = static_cast<int32_t>(graph.nodes.size());
  for (int32_t n = 0; n < nodes; ++n) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(n)];
    for_each_argument(node, [&](ValueId value) { ++begins_[static_cast<size_t>(value) + 1]; });
    int32_t position = 0;
    for_each_result(node, [&](ValueId value) { makers_[static_cast<size_t>(value)] = {n, position++}; });
  }
  for (size_t v = 1; v < begins_.size(); ++v) begins_[v] += begins_[v - 1];
  users_.resize(begins_.back());
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  for (int32_t n = 0; n < nodes; ++n)
    for_each_argument(graph.nodes[static_cast<size_t>(n)],
                      [&](ValueId value) { users_[next[static_cast<size_t>(value)]++] = n; });
}

void drop_after_last_use(Graph& graph) {
  const DefUse def_use(graph);
  std::vector<char> outlives(graph.values.size(), false);
  for (const ValueId input : graph.inputs)
    if (input != kNoValue) outlives[static_cast<size_t>(input)] = true;
  for (const Operand& output : graph.outputs)
    for_each_value(output, [&](ValueId value) { outlives[static_cast<size_t>(value)] = true; });
  for (GraphNode& node : graph.nodes) node.drops.clear();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const auto value = static_cast<ValueId>(v);
    if (outlives[v] || def_use.maker(value) == kNoNode) continue;
    const auto users = def_use.users(value);
    const int32_t last = users.empty() ? def_use.maker(value) : users.back();
    graph.nodes[static_cast<size_t>(last)].drops.push_back(value);
  }
}

}  // namespace metaprof
