#include "step/compiled/passes/compile.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "step/compiled/ir/text.h"
#include "step/compiled/ir/verify_graph.h"

namespace metaprof::ir {
namespace {

using Names = std::vector<std::string_view>;

// (1) Specialise to what is defined, and bring to executable form.
const Names kSpecialise = {"lower_grad_of", "specialise_autograd_zero", "pool_constants"};
const Names kRequired = {"remove_expands", "canonicalise", "eliminate_dead_code"};
// (2) Propagate what is known of the inputs.
const Names kPropagate = {"propagate_constants", "propagate_shapes", "propagate_requires_grad"};
// (3) Rewritings that autograd can still follow.
const Names kDifferentiable = {"eliminate_dead_code", "eliminate_common_subexpressions", "peephole",
                               "propagate_constants", "pool_constants"};
const Names kUnroll = {"unroll_loops", "peephole", "propagate_constants"};
const Names kAfterUnrolling = {"eliminate_common_subexpressions", "check_in_place"};
// (4) Cut out what is differentiated, and differentiate it.
const Names kGradients = {"create_differentiable_graphs", "differentiate"};
// (5) Rewritings that autograd cannot follow.
const Names kWithoutGradients = {"decompose", "batch_matrix_products", "fuse_elementwise"};

size_t count_nodes(const Graph& graph) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  return static_cast<size_t>(
      std::ranges::count_if(nodes, [](const Node* node) { return !node->is(Kind::constant); }));
}

class Compilation {
 public:
  Compilation(PassContext context, const CompileOptions& options, std::vector<PassRecord>& records)
      : context_(context), options_(options), records_(records) {
    if (options.without_inlining) context_.node_threshold = context_.inline_threshold = 1;
  }

  void run(Graph& graph, bool gradients) {
    run(kSpecialise, graph, 1);
    run(kRequired, graph, 1);
    run(kPropagate, graph, 2);
    optimise(graph, 3);
    if (gradients && needs_gradient(graph)) {
      run(kGradients, graph, 4);
      optimise_forwards(graph.block());
      run({"inline_differentiable_graphs"}, graph, 4);
    } else {
      without_gradients(graph, 5);
    }
    run({"eliminate_dead_code"}, graph, 0);
  }

  void run(const Names& names, Graph& graph, int phase) {
    for (const std::string_view name : names)
      run_pass(pass_named(name), graph, context_, options_, phase, records_);
  }

 private:
  static bool needs_gradient(const Graph& graph) {
    return std::ranges::any_of(graph.block().inputs(),
                               [](const auto& input) { return input->type.may_require_grad(); });
  }

  void optimise(Graph& graph, int phase) {
    run(kDifferentiable, graph, phase);
    run(kUnroll, graph, phase);
    // Bodies that stand there several times have types of their own.
    run({"propagate_shapes", "propagate_requires_grad"}, graph, phase);
    run(kAfterUnrolling, graph, phase);
  }

  void without_gradients(Graph& graph, int phase) {
    for (const Pass& custom : options_.custom) run_pass(custom, graph, context_, options_, phase, records_);
    for (const std::string_view name : kWithoutGradients)
      if (options_.fuse || name != "fuse_elementwise") run({name}, graph, phase);
  }

  // What was differentiated runs on tensors without history.
  void optimise_forwards(Block& block) {
    for (Node* node : block.nodes()) {
      for (const auto& inner : node->blocks) optimise_forwards(*inner);
      if (!node->is(Kind::differentiable_graph)) continue;
      Graph& forward = *node->graph("graph");
      run({"propagate_shapes"}, forward, 4);
      run(kDifferentiable, forward, 4);
      run(kAfterUnrolling, forward, 4);
      without_gradients(forward, 5);
    }
  }

  PassContext context_;
  const CompileOptions& options_;
  std::vector<PassRecord>& records_;
};

}  // namespace

void run_pass(const Pass& pass, Graph& graph, const PassContext& context, const CompileOptions& options,
              int phase, std::vector<PassRecord>& records) {
  if (options.disabled.contains(pass.name)) return;
  PassRecord& record = records.emplace_back();
  record.pass = pass.name;
  record.phase = phase;
  record.nodes_before = count_nodes(graph);
  if (options.keep_texts) record.before = to_text(graph);
  const auto begin = std::chrono::steady_clock::now();
  pass.run(graph, context);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  record.nodes_after = count_nodes(graph);
  if (options.keep_texts) record.after = to_text(graph);
  if (!options.verify) return;
  try {
    verify(graph);
  } catch (const Error& error) {
    fail("the pass {} leaves a graph that is none: {}", pass.name, error.what());
  }
}

void run_required_passes(Graph& graph, const PassContext& context, const CompileOptions& options,
                         std::vector<PassRecord>& records) {
  Compilation compilation(context, options, records);
  compilation.run({"lower_grad_of"}, graph, 1);
  compilation.run(kRequired, graph, 1);
}

void compile(Graph& graph, PassContext context, bool gradients, const CompileOptions& options,
             std::vector<PassRecord>& records) {
  Compilation(context, options, records).run(graph, gradients);
}

}  // namespace metaprof::ir
