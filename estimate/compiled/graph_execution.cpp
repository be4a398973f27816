#include "estimate/compiled/graph_execution.h"

#include <fmt/format.h>

#include "core/error.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/dot.h"
#include "step/compiled/ir/text.h"

namespace metaprof {
namespace {

GraphPassRow row_of(const ir::PassRecord& record) {
  return {.pass = std::string(record.pass),
          .phase = record.phase,
          .nodes_before = record.nodes_before,
          .nodes_after = record.nodes_after,
          .seconds = record.seconds,
          .before = record.before,
          .after = record.after};
}

// Of the model, then those of its gradients, and of theirs.
void add_plans(const ir::GraphExecutor& executor, const std::string& title, GraphExecutionReport& report) {
  size_t number = 0;
  for (const auto& [spec, plan] : executor.plans()) {
    const std::string name = fmt::format("{}plan {}", title, ++number);
    report.plans.push_back({name, to_string(spec), plan->graph->nodes().size(), plan->seconds});
    size_t gradient = 0;
    for (const auto& inner : gradient_executors(*plan))
      add_plans(*inner, fmt::format("{}, gradient {}, ", name, ++gradient), report);
  }
}

void read_executor(const ir::GraphExecutor& executor, GraphExecutionReport& report) {
  add_plans(executor, "", report);
  const auto plan = executor.last_plan();
  if (!plan) return;
  for (const ir::PassRecord& record : plan->passes) report.passes.push_back(row_of(record));
  report.dot = ir::to_dot(*plan->graph);
  report.explanation = ir::explain(executor);
}

}  // namespace

ExecutionFigures eager_figures(const Model& model, RunOptions options) {
  options.step.execution = Execution::eager;
  return execution_figures(estimate(model, options).report);
}

GraphExecutionReport graph_execution(const Model& model, const GraphExecutionOptions& options) {
  if (model.is_trace()) fail("{}: a trace has no program that could be compiled: give the model", model.name);
  if (model.program.captured)
    fail(
        "{}: was captured from a run and holds whole steps, which are not compiled as a graph: give the "
        "model",
        model.name);
  RunOptions run = options.run;
  run.step.execution = Execution::graph;
  const Platform platform = platform_of(run, model.program);
  CompiledModel compiled(run, platform, options.compile);
  WorkspacePlanners planners;
  const Estimate in_graph = estimate(model, run, planners, &compiled);
  GraphExecutionReport report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.comparison = {.eager = eager_figures(model, run),
                       .graph = execution_figures(in_graph.report),
                       .scope = *in_graph.report.graph};
  const ir::ExecutorCounters& counters = compiled.counters();
  report.counters = {.executors = counters.executors,
                     .invocations = counters.invocations,
                     .hits = counters.hits,
                     .misses = counters.misses};
  read_executor(*compiled.executor(), report);
  return report;
}

}  // namespace metaprof
