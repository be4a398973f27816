// Runs of nodes that can be differentiated become graphs of their own. Behind each such node its producers are drawn
// in, as far as they are differentiable and nothing in between stands in the way; small ones are put back.

#include <algorithm>

#include "step/compiled/autodiff/differentiable_operators.h"
#include "step/compiled/ir/subgraphs.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

class Slicer {
 public:
  Slicer(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  void run() {
    grow(graph_.block());
    while (unfuse_views(graph_.block())) {
    }
    clean(graph_.block());
    eliminate_common_subexpressions(graph_, context_);
  }

 private:
  bool may_join(const Node& node) const {
    if (node.is(Kind::differentiable_graph)) return !node.has("gradient");
    return !is_view_outside(node) && is_differentiable_in_graph(node);
  }

  // Nodes with effects cannot be passed: what lies between two of them is cut for itself.
  void grow(Block& block) {
    Node* end = block.results.get();
    while (true) {
      Node* begin = end->previous;
      while (begin != block.parameters.get() && !has_effects(*begin)) begin = begin->previous;
      bool changed = true;
      while (changed) changed = scan(begin, end);
      if (begin == block.parameters.get()) break;
      end = begin;
    }
    for (Node* node : block.nodes())
      for (const auto& inner : node->blocks) grow(*inner);
  }

  bool scan(const Node* begin, Node* end) {
    bool changed = false;
    for (Node* node = end->previous; node != begin;) {
      if (!may_join(*node)) {
        node = node->previous;
        continue;
      }
      if (!node->is(Kind::differentiable_graph)) node = make_group(node, Kind::differentiable_graph);
      bool merged = true;
      while (merged) {
        merged = draw_in(node, begin);
        changed |= merged;
      }
      node = node->previous;
    }
    return changed;
  }

  // The producer that stands last comes first.
  bool draw_in(Node* group, const Node* begin) {
    std::vector<Node*> producers;
    for (const Value* input : group->inputs)
      if (input->node->block == group->block && begin->is_before(input->node))
        producers.push_back(input->node);
    std::ranges::sort(producers, [](const Node* a, const Node* b) { return b->is_before(a); });
    for (Node* producer : producers) {
      if (!may_join(*producer) || !make_adjacent(producer, group)) continue;
      merge_into(producer, group);
      return true;
    }
    return false;
  }

  // An output that shares memory with an input or with another output would not be known to do so.
  static Node* sharing_node(Node* group) {
    const Graph& graph = *group->graph("graph");
    const Aliases inside(graph);
    const auto& outputs = graph.block().outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i]->node->is(Kind::parameter)) continue;
      for (const auto& input : graph.block().inputs())
        if (inside.may_share(outputs[i], input.get())) return outputs[i]->node;
      for (size_t j = 0; j < outputs.size(); ++j) {
        if (i == j || !inside.may_share(outputs[i], outputs[j])) continue;
        Node* later = outputs[i]->node->is_before(outputs[j]->node) ? outputs[j]->node : outputs[i]->node;
        const bool is_inner = std::ranges::any_of(later->outputs, [&](const auto& value) {
          return std::ranges::any_of(value->uses,
                                     [&](const Use& use) { return use.user != graph.block().results.get(); });
        });
        if (!is_inner) return later;
      }
    }
    return nullptr;
  }

  bool unfuse_views(Block& block) {
    bool changed = false;
    for (Node* node : block.nodes()) {
      for (const auto& inner : node->blocks) changed |= unfuse_views(*inner);
      if (!node->is(Kind::differentiable_graph)) continue;
      while (Node* shares = sharing_node(node)) {
        // Who takes it inside goes with it.
        while (Node* user = last_user(shares)) shares = user;
        take_out(node, shares);
        changed = true;
      }
    }
    return changed;
  }

  static Node* last_user(Node* node) {
    for (const auto& output : node->outputs)
      for (const Use& use : output->uses)
        if (!use.user->is(Kind::result)) return use.user;
    return nullptr;
  }

  void clean(Block& block) {
    for (Node* node : block.nodes()) {
      for (const auto& inner : node->blocks) clean(*inner);
      if (!node->is(Kind::differentiable_graph) || node->has("gradient")) continue;
      eliminate_common_subexpressions(*node->graph("graph"), context_);
      const auto size = static_cast<int64_t>(working_nodes(*node->graph("graph")).size());
      if (size < context_.node_threshold) inline_group(node);
    }
  }

  Graph& graph_;
  const PassContext& context_;
};

}  // namespace

void create_differentiable_graphs(Graph& graph, const PassContext& context) {
  Slicer(graph, context).run();
  eliminate_dead_code(graph, context);
}

}  // namespace metaprof::ir
