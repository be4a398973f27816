// What the graph executor costs by itself: a run of a plan that is kept, per node, and compiling a graph of a thousand
// nodes.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {
namespace {

const Platform& h200() {
  static const Platform platform = platform_named("h200");
  return platform;
}

// Chains of linear layers' parts: products, sums and activations.
std::shared_ptr<Graph> graph_of(int nodes) {
  static constexpr const char* kNodes[] = {"aten::mm(%v{}, %w)", "aten::add.Tensor(%v{}, %b)",
                                           "aten::tanh(%v{})", "aten::mul.Tensor(%v{}, %b)"};
  std::string text = "graph(%v0: Tensor, %w: Tensor, %b: Tensor) {\n";
  for (int i = 0; i < nodes; ++i)
    text += fmt::format("  %v{} = {}\n", i + 1, fmt::format(fmt::runtime(kNodes[i % 4]), i));
  return parse_graph(text + fmt::format("  -> (%v{})\n}}\n", nodes), standard_registry());
}

std::vector<metaprof::Value> inputs_of(Session& session, bool requires_grad) {
  std::vector<metaprof::Value> inputs;
  for (int i = 0; i < 3; ++i) {
    Tensor tensor = session.empty(Sizes{8, 8}, DType::f32, kFirstGpu);
    tensor->requires_grad = requires_grad;
    inputs.emplace_back(std::move(tensor));
  }
  return inputs;
}

ExecutorOptions options_with(bool fuse) {
  ExecutorOptions options{.context = {.registry = standard_registry(), .platform = h200()}};
  options.compile.fuse = fuse;
  options.compile.verify = false;
  return options;
}

// Run of a kept plan, dispatch of its 100 operators included.
void run_cached_plan(benchmark::State& state) {
  GraphExecutor executor(graph_of(100), options_with(false));
  const auto session = make_session(h200());
  const std::vector<metaprof::Value> inputs = inputs_of(*session, false);
  for (auto _ : state) {
    benchmark::DoNotOptimize(executor.run(*session, inputs));
    if (session->trace.events.size() > 1000000) state.SkipWithError("the trace has grown too long");
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(run_cached_plan)->Iterations(1000);

void compile_thousand_nodes(benchmark::State& state) {
  const auto graph = graph_of(1000);
  const auto session = make_session(h200());
  const std::vector<metaprof::Value> inputs = inputs_of(*session, state.range(0));
  for (auto _ : state) {
    GraphExecutor executor(graph, options_with(true));
    benchmark::DoNotOptimize(executor.plan_for(*session, inputs));
  }
}
BENCHMARK(compile_thousand_nodes)->ArgName("gradients")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace metaprof::ir
