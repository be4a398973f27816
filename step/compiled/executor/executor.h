#pragma once
// The graph executor: runs one graph for arguments of many kinds. For every kind (ArgumentSpec) it compiles a plan once
// and keeps it. Threads may run one executor at once, each in a session of its own.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>

#include "meta/session/session.h"
#include "step/compiled/executor/argument_spec.h"
#include "step/compiled/executor/code.h"
#include "step/compiled/executor/graph_runner.h"
#include "step/compiled/passes/compile.h"

namespace metaprof::ir {

struct ExecutorCounters {
  std::atomic<int64_t> executors{0};  ///< constructed, those of gradients included
  std::atomic<int64_t> invocations{0}, hits{0}, misses{0};
};

struct ExecutorOptions {
  PassContext context;
  CompileOptions compile = {};
  bool optimise = true;  ///< false: every run takes the fallback
  /// Counts for all executors that are made with these options; may be null. Outlives them.
  ExecutorCounters* counters = nullptr;
};

/// A compiled graph.
struct ExecutionPlan {
  std::shared_ptr<Graph> graph;
  Code code;
  std::vector<PassRecord> passes;
  double seconds = 0;  ///< that compiling took
};

class GraphExecutor final : public GraphRunner {
 public:
  /// What `options` refer to must outlive the executor. The graph is copied.
  GraphExecutor(const std::shared_ptr<Graph>& graph, const ExecutorOptions& options);

  /// Runs the graph on its inputs. Errors: fewer inputs than the graph has; those of compilation and of operators.
  std::vector<metaprof::Value> run(Session& session, std::vector<metaprof::Value> inputs) override;

  /// The same by the fallback, whatever the options say.
  std::vector<metaprof::Value> run_fallback(Session& session, std::vector<metaprof::Value> inputs);
  /// The graph as it is, with what these arguments let be known of its values. Error: fewer inputs than it has.
  std::shared_ptr<Graph> specialised(Session& session, std::span<const metaprof::Value> inputs) const;

  /// The plan for these arguments, compiled now if there is none.
  std::shared_ptr<const ExecutionPlan> plan_for(Session& session, std::span<const metaprof::Value> inputs);
  std::shared_ptr<const ExecutionPlan> fallback();

  const Graph& graph() const { return *graph_; }
  /// Plans by what they are for, in the order in which they were compiled.
  std::vector<std::pair<ArgumentSpec, std::shared_ptr<const ExecutionPlan>>> plans() const;
  /// What the fallback runs; null: nobody took it yet.
  std::shared_ptr<const ExecutionPlan> kept_fallback() const;
  /// The plan that ran last; null: none did.
  std::shared_ptr<const ExecutionPlan> last_plan() const;
  const ExecutorOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;
  void expect_inputs(size_t count) const;
  std::shared_ptr<const ExecutionPlan> compile(const ArgumentSpec& spec) const;
  std::shared_ptr<const ExecutionPlan> plan_of(const std::shared_ptr<Graph>& graph,
                                               std::vector<PassRecord> records,
                                               Clock::time_point begin) const;
  void count(std::atomic<int64_t> ExecutorCounters::*counter) const {
    if (options_.counters) ++(options_.counters->*counter);
  }

  const ExecutorOptions options_;
  const std::shared_ptr<Graph> graph_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const ExecutionPlan> fallback_, last_;
  std::unordered_map<ArgumentSpec, std::shared_ptr<const ExecutionPlan>, HashOfSpec> plans_;
  std::vector<ArgumentSpec> order_;
};

/// Executors of the gradients of a plan's differentiable graphs, in order.
std::vector<std::shared_ptr<GraphExecutor>> gradient_executors(const ExecutionPlan& plan);

/// Graph, fallback, plans by their specification, and the same of the executors of gradients: for --explain.
std::string explain(const GraphExecutor& executor);

}  // namespace metaprof::ir
