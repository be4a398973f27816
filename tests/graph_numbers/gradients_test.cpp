// Thresholds of differentiable graphs, undefined gradients, and executors of gradients inside each other.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"

namespace metaprof::ir {
namespace {

// A chain of unary functions, whose derivatives add no nodes.
std::shared_ptr<Graph> chain_of(int nodes) {
  static constexpr const char* kFunctions[] = {"sin", "cos", "tanh", "exp", "neg", "sigmoid"};
  std::string text = "graph(%v0: Tensor(f64[3] cpu grad)) {\n";
  for (int i = 0; i < nodes; ++i) text += fmt::format("  %v{} = aten::{}(%v{})\n", i + 1, kFunctions[i], i);
  return parse_graph(text + fmt::format("  -> (%v{})\n}}\n", nodes), standard_registry());
}

int differentiable_graphs(const Graph& graph) {
  int count = 0;
  for (const Node* node : graph.nodes()) count += node->is(Kind::differentiable_graph);
  return count;
}

// Two nodes make a differentiable graph (threshold 2), and fewer than five are put back (inline threshold 5).
TEST(Thresholds, OfDifferentiableGraphs) {
  for (const int nodes : {1, 2, 4, 5, 6}) {
    for (const bool without_inlining : {false, true}) {
      const auto graph = chain_of(nodes);
      ExecutorOptions options = test_options();
      options.compile.without_inlining = without_inlining;
      GraphExecutor executor(graph, options);
      GraphRun run;
      EXPECT_EQ(run.run(executor, run.arguments(*graph)).error, "");
      EXPECT_EQ(differentiable_graphs(*executor.last_plan()->graph), without_inlining || nodes >= 5 ? 1 : 0)
          << nodes << " nodes";
    }
  }
}

// The threshold itself, without inlining behind it.
TEST(Thresholds, OneNodeMakesNoGraphTwoDo) {
  for (const int nodes : {1, 2}) {
    const auto graph = chain_of(nodes);
    ExecutorOptions options = test_options();
    options.compile.disabled = {"inline_differentiable_graphs"};
    GraphExecutor executor(graph, options);
    GraphRun run;
    EXPECT_EQ(run.run(executor, run.arguments(*graph)).error, "");
    EXPECT_EQ(differentiable_graphs(*executor.last_plan()->graph), nodes - 1) << nodes << " nodes";
  }
}

constexpr const char* kTwoOutputs = R"(graph(%x: Tensor(f64[4,4] cpu grad), %w: Tensor(f64[4,4] cpu grad)) {
  %a = aten::mm(%x, %w)
  %b = aten::tanh(%a)
  %c = aten::mm(%b, %w)
  %d = aten::mul.Tensor(%c, %x)
  -> (%b, %d)
})";

int64_t backward_flops(bool both) {
  const auto graph = parse_graph(kTwoOutputs, standard_registry());
  GraphExecutor executor(graph, test_options());
  GraphRun run;
  const std::vector<metaprof::Value> arguments = run.arguments(*graph);
  const auto outputs = executor.run(*run.session, arguments);
  std::vector<Tensor> roots = {outputs[0].tensor()};
  if (both) roots.push_back(outputs[1].tensor());
  std::vector<Tensor> ones;
  ones.reserve(roots.size());
  for (const Tensor& root : roots) ones.push_back(call<"ones_like">(*run.session, root));
  const std::vector<Tensor> leaves = {arguments[0].tensor(), arguments[1].tensor()};
  const size_t calls = run.session->trace.calls.size();
  grad(*run.session, roots, leaves, ones);
  Flops flops;
  for (size_t i = calls; i < run.session->trace.calls.size(); ++i)
    flops += run.session->trace.calls[i].counted;
  const auto gradients = gradient_executors(*executor.last_plan());
  EXPECT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[0]->plans().size(), 1u);
  return flops.count;
}

// Products of the backward, 2 · 4 · 4 · 4 = 128 FLOPs each: two for the second product, two for the first. Without a
// gradient of the second output the second product has none.
TEST(UndefinedGradients, AreSpecialisedAway) {
  EXPECT_EQ(backward_flops(true), 4 * 128);
  EXPECT_EQ(backward_flops(false), 2 * 128);
}

// Without a gradient of the product there is none of the second list, but each of its tensors has an edge, which the
// backward waits for: x and y get what comes through the first list.
TEST(UndefinedGradients, OfAListAreAsManyAsItsTensors) {
  const auto graph = parse_graph(R"(graph(%x: Tensor(f64[2,3] cpu grad), %y: Tensor(f64[2,3] cpu grad)) {
    %a = aten::cat([%x, %y], 0)
    %b = aten::exp(%a)
    %c = aten::cat([%y, %x], 0)
    %d = aten::sin(%c)
    %e = aten::mul.Tensor(%b, %d)
    -> (%e, %b)
  })",
                                 standard_registry());
  const auto gradients_of = [&](bool optimise) {
    GraphExecutor executor(graph, test_options(optimise));
    GraphRun run;
    const std::vector<metaprof::Value> arguments = run.arguments(*graph);
    const auto outputs = executor.run(*run.session, arguments);
    const std::vector<Tensor> roots = {outputs[1].tensor()};
    const std::vector<Tensor> ones = {call<"ones_like">(*run.session, roots[0])};
    const std::vector<Tensor> leaves = {arguments[0].tensor(), arguments[1].tensor()};
    std::vector<Numbers> gradients;
    for (const Tensor& gradient : grad(*run.session, roots, leaves, ones))
      gradients.push_back(run.read(gradient));
    return gradients;
  };
  EXPECT_EQ(gradients_of(true), gradients_of(false));
}

// The executor of the gradient runs for both backwards.
TEST(NestedExecutors, RunTheBackwardOfABackward) {
  const auto graph = parse_graph(R"(graph(%x: Tensor(f64[3] cpu grad), %y: Tensor(f64[3] cpu grad)) {
    %a = aten::mul.Tensor(%x, %y)
    %b = aten::mul.Tensor(%a, %x)
    %c = aten::mul.Tensor(%a, %b)
    %d = aten::tanh(%c)
    %e = aten::mul.Tensor(%d, %a)
    -> (%e)
  })",
                                 standard_registry());
  ExecutorCounters counters;
  ExecutorOptions options = test_options(true, &counters);
  options.compile.without_inlining = true;
  GraphExecutor compiled(graph, options), plain(graph, test_options(false));
  GraphRun a, b;
  const GraphResult found = a.run(compiled, a.arguments(*graph), true);
  const GraphResult expected = b.run(plain, b.arguments(*graph), true);
  EXPECT_EQ(difference(found, expected), "");
  EXPECT_FALSE(expected.second_gradients.empty());
  const auto gradients = gradient_executors(*compiled.last_plan());
  ASSERT_EQ(gradients.size(), 1u);
  // One plan of the first backward, which is differentiated itself, and one of the second, in which what was captured
  // has gradients of its own and nothing is differentiated.
  EXPECT_EQ(gradients[0]->plans().size(), 2u) << explain(compiled);
  EXPECT_EQ(counters.executors, 3);
}

// Their gradients are graphs, which have gradients.
TEST(NestedExecutors, DifferentiateProductsTwice) {
  const auto graph = parse_graph(R"(graph(%x: Tensor(f64[3,3] cpu grad), %w: Tensor(f64[3,3] cpu grad)) {
    %a = aten::linear(%x, %w, None)
    %b = aten::tanh(%a)
    %c = aten::linear(%b, %w, None)
    %d = aten::mul.Tensor(%c, %x)
    -> (%d)
  })",
                                 standard_registry());
  GraphExecutor compiled(graph, test_options()), plain(graph, test_options(false));
  GraphRun a, b;
  const GraphResult found = a.run(compiled, a.arguments(*graph), true);
  const GraphResult expected = b.run(plain, b.arguments(*graph), true);
  EXPECT_EQ(difference(found, expected), "") << explain(compiled);
  EXPECT_FALSE(expected.second_gradients.empty());
}

}  // namespace
}  // namespace metaprof::ir
