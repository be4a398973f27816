// Differentiable graphs that are too small to be worth a node of their own are put back, without what was added for
// their gradient.

#include <algorithm>

#include "step/compiled/ir/subgraphs.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// As the framework counts (inline_autodiff_subgraphs.cpp, 2.11): all nodes, constants among them.
// The framework's formula of cat has lengths computed in a loop beside it.
constexpr int64_t kNodesOfCat = 7;

int64_t size_of(const Graph& graph) {
  int64_t size = 0;
  for (const Node* node : graph.nodes()) size += node->name == "aten::cat" ? kNodesOfCat : 1;
  return size;
}

// Autograd cannot record a fused kernel.
bool has_fused(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) { return node->is(Kind::fusion_group); });
}

void inline_small(Block& block, int64_t threshold) {
  for (Node* node : block.nodes()) {
    for (const auto& inner : node->blocks) inline_small(*inner, threshold);
    if (!node->is(Kind::differentiable_graph)) continue;
    const Graph& graph = *node->graph("graph");
    if (size_of(graph) >= threshold || has_fused(graph)) continue;
    inline_group(node);
  }
}

}  // namespace

void inline_differentiable_graphs(Graph& graph, const PassContext& context) {
  inline_small(graph.block(), context.inline_threshold);
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
