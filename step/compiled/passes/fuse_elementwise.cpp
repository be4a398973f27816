// Elementwise operators that feed each other become one kernel (prim::FusionGroup). All results of a kernel have the
// sizes of what it computes: a producer whose result somebody else takes, too, is written out besides.

#include <algorithm>

#include "step/compiled/passes/elementwise.h"
#include "step/compiled/passes/pass.h"
#include "step/compiled/passes/subgraphs.h"

namespace metaprof::ir {
namespace {

// A kernel's arguments are passed in a parameter space of a fixed size (torch/csrc/jit/passes/graph_fuser.cpp, 2.11:
// fusion_kernel_args_limit).
constexpr size_t kMostArguments = 128;

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), aliases_(graph) {}

  void run(const PassContext& context) {
    fuse(graph_.block());
    clean(graph_.block());
    absorb_contexts(graph_.block());
    std::vector<Node*> nodes;
    collect_nodes(graph_.block(), nodes);
    for (const Node* node : nodes)
      if (node->is(Kind::fusion_group)) pool_constants(*node->graph("graph"), context);
  }

 private:
  bool may_fuse(const Node& node) const {
    if (node.is(Kind::fusion_group)) return true;
    return is_elementwise(node) && !aliases_.touches_written(node) && on_tensors(node);
  }

  // Numbers are arguments of a kernel; lists are not.
  static bool on_tensors(const Node& node) {
    return std::ranges::all_of(node.inputs, [](const Value* input) {
      return input->node->is(Kind::constant) || input->type.is_tensor() ||
             input->type.kind == Type::Kind::scalar || input->type.kind == Type::Kind::real ||
             input->type.kind == Type::Kind::integer;
    });
  }

  void fuse(Block& block) {
    for (Node* node = block.results->previous; node != block.parameters.get(); node = node->previous) {
      for (const auto& inner : node->blocks) fuse(*inner);
      if (!may_fuse(*node)) continue;
      if (!node->is(Kind::fusion_group)) node = make_group(node, Kind::fusion_group);
      while (draw_in(node)) {
      }
    }
  }

  // A producer that others take, too, comes in only if the kernel's inputs do not grow by it.
  bool draw_in(Node* group) {
    std::vector<Node*> producers;
    for (const Value* input : group->inputs)
      if (input->node->block == group->block && !input->node->is(Kind::parameter))
        producers.push_back(input->node);
    std::ranges::sort(producers, [](const Node* a, const Node* b) { return b->is_before(a); });
    for (Node* producer : producers) {
      if (!may_fuse(*producer) || !only_feeds(*producer, *group)) continue;
      if (group->inputs.size() + producer->inputs.size() > kMostArguments) continue;
      if (!make_adjacent(producer, group)) continue;
      merge_into(producer, group);
      return true;
    }
    return false;
  }

  static bool only_feeds(const Node& producer, const Node& group) {
    return std::ranges::all_of(producer.outputs, [&](const auto& output) {
      return std::ranges::all_of(
          output->uses, [&](const Use& use) { return use.user == &group || use.user->is(Kind::context); });
    });
  }

  // A kernel of one operator is the operator.
  static void clean(Block& block) {
    for (Node* node : block.nodes()) {
      for (const auto& inner : node->blocks) clean(*inner);
      if (node->is(Kind::fusion_group) && working_nodes(*node->graph("graph")).size() == 1)
        inline_group(node);
    }
  }

  // What a call inside leaves for its derivative is geometry: it needs no result in memory.
  static void absorb_contexts(Block& block) {
    for (Node* node : block.nodes()) {
      for (const auto& inner : node->blocks) absorb_contexts(*inner);
      if (!node->is(Kind::context)) continue;
      const Node* maker = node->inputs.back()->node;  // of the call's result
      if (!maker->is(Kind::fusion_group) || maker->block != &block) continue;
      const bool inside = std::ranges::all_of(node->inputs, [&](const Value* input) {
        return input->node == maker || input->node->is(Kind::constant) ||
               std::ranges::find(maker->inputs, input) != maker->inputs.end();
      });
      if (inside) merge_behind(node->inputs.back()->node, node);
    }
  }

  Graph& graph_;
  const Aliases aliases_;
};

}  // namespace

void fuse_elementwise(Graph& graph, const PassContext& context) {
  Fuser(graph).run(context);
  eliminate_dead_code(graph, context);
  pool_constants(graph, context);  // those of groups that were put back
}

}  // namespace metaprof::ir
