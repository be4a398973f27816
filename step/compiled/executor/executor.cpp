#include "step/compiled/executor/executor.h"

#include <fmt/format.h>

#include "core/error.h"
#include "step/compiled/executor/differentiable_code.h"
#include "step/compiled/executor/interpreter.h"
#include "step/compiled/executor/make_code.h"
#include "step/compiled/ir/text.h"

namespace metaprof::ir {

GraphExecutor::GraphExecutor(const std::shared_ptr<Graph>& graph, const ExecutorOptions& options)
    : options_(options), graph_(graph->copy()) {
  count(&ExecutorCounters::executors);
}

void GraphExecutor::expect_inputs(size_t count) const {
  const size_t wanted = graph_->block().inputs().size();
  if (count < wanted) fail("the graph takes {} inputs, but got only {}", wanted, count);
}

std::vector<metaprof::Value> GraphExecutor::run(Session& session, std::vector<metaprof::Value> inputs) {
  if (!options_.optimise) return run_fallback(session, std::move(inputs));
  expect_inputs(inputs.size());
  inputs.resize(graph_->block().inputs().size());
  count(&ExecutorCounters::invocations);
  const std::shared_ptr<const ExecutionPlan> plan = plan_for(session, inputs);
  return metaprof::ir::run(plan->code, session, std::move(inputs));
}

std::vector<metaprof::Value> GraphExecutor::run_fallback(Session& session,
                                                         std::vector<metaprof::Value> inputs) {
  expect_inputs(inputs.size());
  inputs.resize(graph_->block().inputs().size());
  count(&ExecutorCounters::invocations);
  return metaprof::ir::run(fallback()->code, session, std::move(inputs));
}

std::shared_ptr<Graph> GraphExecutor::specialised(Session& session,
                                                  std::span<const metaprof::Value> inputs) const {
  expect_inputs(inputs.size());
  std::shared_ptr<Graph> graph = graph_->copy();
  ArgumentSpec(*graph_, inputs, session.modes.grad).specialise(*graph);
  propagate_shapes(*graph, options_.context);
  return graph;
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::plan_for(Session& session,
                                                             std::span<const metaprof::Value> inputs) {
  const ArgumentSpec spec(*graph_, inputs, session.modes.grad);  // hashed before anybody waits
  const std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(spec); found != plans_.end()) {
    count(&ExecutorCounters::hits);
    return last_ = found->second;
  }
  last_ = compile(spec);
  plans_.emplace(spec, last_);
  order_.push_back(spec);
  count(&ExecutorCounters::misses);
  return last_;
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::fallback() {
  const std::lock_guard lock(mutex_);
  if (!fallback_) {
    const Clock::time_point begin = Clock::now();
    std::shared_ptr<Graph> graph = graph_->copy();
    std::vector<PassRecord> records;
    run_required_passes(*graph, options_.context, options_.compile, records);
    fallback_ = plan_of(graph, std::move(records), begin);
  }
  return last_ = fallback_;
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::compile(const ArgumentSpec& spec) const {
  const Clock::time_point begin = Clock::now();
  std::shared_ptr<Graph> graph = graph_->copy();
  spec.specialise(*graph);
  std::vector<PassRecord> records;
  metaprof::ir::compile(*graph, options_.context, spec.gradients(), options_.compile, records);
  return plan_of(graph, std::move(records), begin);
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::plan_of(const std::shared_ptr<Graph>& graph,
                                                            std::vector<PassRecord> records,
                                                            Clock::time_point begin) const {
  const auto executor = [this](const std::shared_ptr<Graph>& gradient) {
    return std::make_shared<GraphExecutor>(gradient, options_);
  };
  Code code = make_code(graph, executor);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return std::make_shared<ExecutionPlan>(ExecutionPlan{graph, std::move(code), std::move(records), seconds});
}

std::vector<std::pair<ArgumentSpec, std::shared_ptr<const ExecutionPlan>>> GraphExecutor::plans() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<ArgumentSpec, std::shared_ptr<const ExecutionPlan>>> plans;
  for (const ArgumentSpec& spec : order_) plans.emplace_back(spec, plans_.at(spec));
  return plans;
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::kept_fallback() const {
  const std::lock_guard lock(mutex_);
  return fallback_;
}

std::shared_ptr<const ExecutionPlan> GraphExecutor::last_plan() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::vector<std::shared_ptr<GraphExecutor>> gradient_executors(const ExecutionPlan& plan) {
  std::vector<std::shared_ptr<GraphExecutor>> executors;
  for (const Instruction& instruction : plan.code.instructions) {
    const auto* code = dynamic_cast<const DifferentiableCode*>(instruction.inner.get());
    if (code && code->gradient())
      executors.push_back(std::static_pointer_cast<GraphExecutor>(code->gradient()));
  }
  return executors;
}

namespace {

void explain(const GraphExecutor& executor, const std::string& title, std::string& text) {
  text += fmt::format("{}: graph\n{}", title, to_text(executor.graph()));
  if (const auto fallback = executor.kept_fallback())
    text += fmt::format("\n{}, fallback\n{}", title, to_text(*fallback->graph));
  size_t number = 0;
  for (const auto& [spec, plan] : executor.plans()) {
    const std::string plan_title = fmt::format("{}, plan {}", title, ++number);
    text += fmt::format("\n{} ({})\n{}", plan_title, to_string(spec), to_text(*plan->graph));
    size_t gradient = 0;
    for (const auto& inner : gradient_executors(*plan)) {
      text += "\n";
      explain(*inner, fmt::format("{}, gradient {}", plan_title, ++gradient), text);
    }
  }
}

}  // namespace

std::string explain(const GraphExecutor& executor) {
  std::string text;
  explain(executor, "executor", text);
  return text;
}

}  // namespace metaprof::ir
