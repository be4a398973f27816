#include "estimate/cudagraphs.h"

#include "core/error.h"
#include "estimate/framework.h"
#include "meta/ops/all.h"
#include "meta/optim/optimizer.h"
#include "meta/step/whole_network.h"

namespace metaprof {
namespace {

CachingAllocator allocator_of(const RunOptions& options, const Platform& platform) {
  return CachingAllocator({.conf = parse_alloc_conf(options.alloc_conf),
                           .device = {.capacity = static_cast<uint64_t>(platform.hardware.memory.count)},
                           .order = platform.framework.free_block_order});
}

// What the framework itself refuses while it captures.
void check_step(const RunOptions& options) {
  const StepOptions& step = options.step;
  if (step.mode != Mode::train)
    fail("--mode {}: what is captured is a training step; leave the option out", to_string(step.mode));
  if (step.execution == Execution::graph)
    fail("--execution graph: what is captured is run operator by operator; leave the option out");
  if (step.precision == Precision::amp_fp16)
    fail(
        "--precision amp-fp16: gradient scaling reads on the host whether gradients overflow, which no "
        "capture "
        "allows; amp-bf16 needs none");
  if (step.optimizer != "none" && !step_can_be_captured(step.optimizer))
    fail(
        "--optimizer {}: it counts its steps on the host, so that the framework refuses to capture them; "
        "sgd, "
        "sgd-momentum and adamw-capturable can be captured",
        step.optimizer);
}

// The framework ends such a capture with an error.
void note_refusals(CudagraphsReport& report) {
  for (const CaptureVerdict& verdict : report.graphs)
    if (verdict.reason == SkipReason::data_read || verdict.reason == SkipReason::incompatible_operator)
      report.notes.push_back(verdict.graph +
                             " cannot be captured, so that the figures of the whole step as one graph are "
                             "those of a capture that would go through: " +
                             verdict.message);
}

}  // namespace

CudagraphsReport cudagraphs(const Model& model, const CudagraphsOptions& options) {
  if (model.is_trace()) fail("{}: a trace has no program that could be captured: give the model", model.name);
  const Platform platform = platform_of(options.run, model.program);
  if (platform.hardware.is_cpu()) fail("--device {}: CUDA graphs are of CUDA devices", options.run.device);
  check_step(options.run);
  CudagraphsReport report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.options = option_values(options.run);
  report.warmup = options.warmup;
  const Program program = with_inputs(model, options.run);
  report.graphs.push_back(judge_forward(program, standard_registry(), options.policy));
  WorkspacePlanners planners;
  const auto planned = planners.for_run(options.run.workspaces, platform);
  StepOptions step = options.run.step;
  step.workspaces = planned.get();
  const WholeNetworkTrace run = run_whole_network(program, platform, step, options.warmup);
  report.graphs.push_back(judge_backward(run.trace, standard_registry()));
  if (options.whole_network) {
    CachingAllocator allocator = allocator_of(options.run, platform);
    report.whole_network = measure(run, platform.device(), allocator);
    note_refusals(report);
  }
  if (options.graphed_callables) {
    CachingAllocator allocator = allocator_of(options.run, platform);
    step.steps = options.tree_steps;
    report.graphed_callables =
        measure(run_graphed_callables(program, platform, step, options.warmup), platform.device(), allocator);
  }
  if (options.tree) {
    CachingAllocator allocator = allocator_of(options.run, platform);
    step.steps = options.tree_steps;
    report.tree = run_tree(program, platform, step, report.graphs[0], report.graphs[1], allocator);
  }
  return report;
}

}  // namespace metaprof
