#include "estimate/compiled_model.h"

#include <algorithm>

#include "core/error.h"
#include "meta/ops/all.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/from_program.h"
#include "step/compiled/ir/subgraphs.h"

namespace metaprof {
namespace {

void check(const RunOptions& options) {
  if (options.step.precision != Precision::fp32)
    fail(
        "--precision {}: a graph is compiled in the dtypes of the export; export the model in 16 bits, or "
        "leave --precision or --execution out",
        to_string(options.step.precision));
  if (options.step.anomaly)
    fail("--anomaly: gradients inside a graph are not looked through; leave --anomaly or --execution out");
  if (options.step.hooks != SavedHooks::none)
    fail("--hooks {}: what a graph keeps is not packed; leave --hooks or --execution out",
         to_string(options.step.hooks));
  if (!options.step.grad.empty())
    fail("--grad {}: gradients of inputs are not compiled; leave --grad or --execution out",
         options.step.grad);
  if (!options.step.checkpoint.empty())
    fail(
        "--checkpoint {}: what backward recomputes is not compiled as a graph; leave --checkpoint "
        "or "
        "--execution out",
        options.step.checkpoint);
}

}  // namespace

CompiledModel::CompiledModel(const RunOptions& run, const Platform& platform,
                             const CompiledModelOptions& options)
    : run_(run), platform_(platform), options_(options), counters_(std::make_unique<ir::ExecutorCounters>()) {
  check(run);
  check_passes({options.disabled.begin(), options.disabled.end()});
}

CompiledModel::~CompiledModel() = default;

void check_passes(const std::vector<std::string>& names) {
  for (const std::string& name : names) (void)ir::pass_named(name);
}

namespace {

// What plans have in common with the framework's, in numbers.
class ScopeReader {
 public:
  explicit ScopeReader(GraphScope& scope) : scope_(scope) {}

  void read(const ir::GraphExecutor& executor, bool of_gradients) {
    for (const auto& [spec, plan] : executor.plans()) {
      ++(of_gradients ? scope_.of_gradients : scope_.plans);
      for (const ir::PassRecord& record : plan->passes)
        if (std::ranges::find(scope_.passes, record.pass) == scope_.passes.end())
          scope_.passes.emplace_back(record.pass);
      read(*plan->graph, !of_gradients);
      for (const auto& gradient : gradient_executors(*plan)) read(*gradient, true);
    }
  }

 private:
  void read(const ir::Graph& graph, bool outside) {
    std::vector<ir::Node*> nodes;
    collect_nodes(graph.block(), nodes);
    for (const ir::Node* node : nodes) {
      if (node->is(ir::Kind::differentiable_graph)) read(*node->graph("graph"), false);
      scope_.batches += node->is(ir::Kind::matmul_tree) || node->is(ir::Kind::matmul_side);
      if (node->is(ir::Kind::fusion_group)) {
        ++scope_.kernels;
        scope_.fused += working_nodes(*node->graph("graph")).size();
      }
      if (outside && is_differentiated(*node)) ++scope_.outside[node->name];
    }
  }

  static bool is_differentiated(const ir::Node& node) {
    return node.is(ir::Kind::call) && (node.op->has_derivative() || node.op->record.meta.composite) &&
           std::ranges::any_of(node.outputs,
                               [](const auto& output) { return output->type.may_require_grad(); });
  }

  GraphScope& scope_;
};

}  // namespace

GraphScope CompiledModel::scope(size_t followed) const {
  GraphScope scope;
  scope.device = platform_.hardware.name;
  scope.on_host = !platform_.device().is_cuda();
  scope.optimised = options_.optimise;
  scope.left_out = {options_.disabled.begin(), options_.disabled.end()};
  scope.followed = followed;
  if (executor_) ScopeReader(scope).read(*executor_, false);
  return scope;
}

MakeModelRunner CompiledModel::runner() {
  return [this](const Program& program) -> ModelRunner {
    const bool training = run_.step.mode == Mode::train || !program.training;
    const Registry& registry = registry_for(platform_.framework.version);
    ir::ExecutorOptions options{.context = {.registry = registry, .platform = platform_}};
    options.compile.disabled = options_.disabled;
    options.compile.keep_texts = options_.keep_texts;
    options.optimise = options_.optimise;
    options.counters = counters_.get();
    executor_ = std::make_unique<ir::GraphExecutor>(ir::from_program(program, registry, training), options);
    return [this](Session& session, const std::vector<Value>& inputs) {
      return executor_->run(session, inputs);
    };
  };
}

}  // namespace metaprof
