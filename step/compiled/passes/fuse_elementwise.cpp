// Elementwise operators that feed each other become one kernel (prim::FusionGroup), as the framework's fuser for CUDA
// makes them (torch/csrc/jit/passes/graph_fuser.cpp, 2.11). A producer whose result somebody else takes, too, comes in
// and is written out besides. Chunks that stand between a producer and a kernel move before the producer, and a
// concatenation may be the end of a kernel.

#include <algorithm>

#include "step/compiled/fusion/elementwise.h"
#include "step/compiled/fusion/fused_chunks.h"
#include "step/compiled/fusion/fused_sizes.h"
#include "step/compiled/ir/subgraphs.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// A kernel's arguments are passed in a parameter space of a fixed size (fusion_kernel_args_limit).
constexpr size_t kMostArguments = 128;

bool is_on_host(const Value& value) { return value.type.tensor.device == DeviceType::cpu; }

class Fuser {
 public:
  Fuser(Block& block, const Aliases& aliases, const PassContext& context)
      : block_(block), aliases_(aliases), context_(context) {}

  void run() {
    // Once is not enough: kernels that were made later may take what stood in the way of others.
    for (bool changed = true; changed;) changed = scan();
    fuse_concatenations();
    std::vector<Node*> kernels = block_.nodes();
    std::erase_if(kernels, [](const Node* node) { return !node->is(Kind::fusion_group); });
    for (const Node* kernel : kernels) tidy(*kernel->graph("graph"));
    replace_broadcasting_chunks(block_, context_.registry);
    fuse_first_chunks(block_);
    for (Node* kernel : kernels) {
      drop_outputs_for_sizes(kernel);
      pool_constants(*kernel->graph("graph"), context_);
    }
    for (Node* node : block_.nodes())
      for (const auto& inner : node->blocks) Fuser(*inner, aliases_, context_).run();
  }

 private:
  bool has_code(const Node& node) const {
    return node.block == &block_ && (node.is(Kind::fusion_group) || is_fusible(node)) &&
           !aliases_.touches_written(node);
  }
  // On the host nothing is fused.
  bool may_fuse(const Node& node) const {
    return has_code(node) && std::ranges::none_of(node.outputs, [](const auto& output) {
             return output->is_used() && is_on_host(*output);
           });
  }

  bool scan() {
    bool changed = false;
    for (Node* node = block_.results->previous; node != block_.parameters.get();) {
      Node* again = may_fuse(*node) ? fuse_one(node) : nullptr;
      changed |= again != nullptr;
      node = again ? again : node->previous;
    }
    return changed;
  }

  // Producers that stand last come first: in f(a, a + b) the sum has to come in before a.
  std::vector<Value*> producers_of(const Node& node) const {
    std::vector<Value*> producers;
    for (Value* input : node.inputs)
      if (input->node->block == &block_ && !input->node->is(Kind::parameter)) producers.push_back(input);
    std::ranges::stable_sort(producers,
                             [](const Value* a, const Value* b) { return b->node->is_before(a->node); });
    return producers;
  }

  // The node to look at again; null: nothing was fused.
  Node* fuse_one(Node* consumer) {
    const auto has_code_here = [this](const Node& node) { return has_code(node); };
    for (Value* producer : producers_of(*consumer)) {
      if (move_chunk(consumer, producer, has_code_here)) return consumer;
      if (Node* group = draw_in(consumer, producer->node)) return group;
    }
    return nullptr;
  }

  static bool fits(const Node& consumer, const Node& producer) {
    return consumer.inputs.size() + consumer.outputs.size() + producer.inputs.size() +
               producer.outputs.size() <=
           kMostArguments;
  }

  Node* draw_in(Node* consumer, Node* producer) {
    if (!may_fuse(*producer) || !make_adjacent(producer, consumer) || !fits(*consumer, *producer))
      return nullptr;
    Node* group = consumer->is(Kind::fusion_group) ? consumer : make_group(consumer, Kind::fusion_group);
    merge_into(producer, group);
    return group;
  }

  // --- Concatenations

  static bool may_end(const Node& node) {
    if (node.name != "aten::cat" || !node.has_constant(1)) return false;
    const Node& list = *node.input(0)->node;
    return list.is(Kind::list_construct) && list.output()->uses.size() == 1 &&
           list.inputs.size() + 1 <= kMostArguments;
  }

  static bool ends_with_concatenation(const Value& value) {
    const Node& group = *value.node;
    return group.is(Kind::fusion_group) &&
           group.graph("graph")->block().output(value.index)->node->is(Kind::fused_concat);
  }

  void fuse_concatenations() {
    std::vector<Node*> nodes = block_.nodes();
    std::erase_if(nodes, [](const Node* node) { return !may_end(*node); });
    for (size_t i = nodes.size(); i-- > 0;) fuse_concatenation(nodes[i]);
  }

  void fuse_concatenation(Node* concatenation) {
    Node* list = concatenation->input(0)->node;
    Node* end = block_.graph.create(Kind::fused_concat, list->inputs);
    end->attributes["dim"] = concatenation->constant(1);
    end->scope = concatenation->scope;
    end->add_output(concatenation->output()->type, concatenation->output()->name);
    end->move_before(list);
    // Its result has a use, so that the kernel knows it as one of its own.
    Value* result = concatenation->output();
    result->replace_with(end->output());
    Node* group = make_group(end, Kind::fusion_group);
    bool fused = false;
    while (draw_into_concatenation(group)) fused = true;
    if (fused) {
      concatenation->destroy();
      if (list->is_unused()) list->destroy();
      return;
    }
    group->output(0)->replace_with(result);
    group->destroy();
  }

  bool draw_into_concatenation(Node* group) {
    for (Value* input : producers_of(*group)) {
      if (!may_fuse(*input->node) || !fits(*group, *input->node) || ends_with_concatenation(*input)) continue;
      if (!make_adjacent(input->node, group)) continue;
      merge_into(input->node, group);
      return true;
    }
    return false;
  }

  void tidy(Graph& kernel) const {
    eliminate_dead_code(kernel, context_);
    eliminate_common_subexpressions(kernel, context_);
  }

  Block& block_;
  const Aliases& aliases_;
  const PassContext& context_;
};

}  // namespace

void fuse_elementwise(Graph& graph, const PassContext& context) {
  const Aliases aliases(graph);
  Fuser(graph.block(), aliases, context).run();
  eliminate_common_subexpressions(graph, context);
  eliminate_dead_code(graph, context);
  pool_constants(graph, context);
}

}  // namespace metaprof::ir
