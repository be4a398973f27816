#include "estimate/compiled_model.h"

#include "core/error.h"
#include "meta/ops/all.h"
#include "step/compiled/executor/executor.h"
#include "step/compiled/ir/from_program.h"

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
