#include "estimate/cudagraphs.h"

#include "core/error.h"
#include "estimate/captured_run.h"
#include "estimate/framework.h"
#include "graph/aot/assigned_numbers.h"
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

// The steps of a captured program are its own: only what they did can be judged.
void judge_captured(const Model& model, const CudagraphsOptions& options, const Platform& platform,
                    CudagraphsReport& report) {
  RunOptions run = as_captured(options.run, model.program);
  const auto environment = run.step.environment;
  run.step = {};
  run.step.environment = environment;
  WorkspacePlanners planners;
  WorkspaceSources workspaces;
  const Trace trace = run_model(model.program, run, platform, planners, workspaces);
  for (const Phase phase : {Phase::forward, Phase::backward})
    report.graphs.push_back(judge_run(trace, phase, standard_registry()));
  report.notes.push_back(model.name +
                         " was captured from a run: inputs that it writes to are not looked for, and what "
                         "its steps would take as graphs "
                         "is not modelled; give an export of the model for both");
}

}  // namespace

CudagraphsReport cudagraphs(const Model& model, const CudagraphsOptions& options) {
  if (model.is_trace()) fail("{}: a trace has no program that could be captured: give the model", model.name);
  const Platform platform = platform_of(as_captured(options.run, model.program), model.program);
  if (platform.hardware.is_cpu()) fail("--device {}: CUDA graphs are of CUDA devices", options.run.device);
  CudagraphsReport report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.options = option_values(options.run);
  report.warmup = options.warmup;
  if (model.program.captured) {
    judge_captured(model, options, platform, report);
    return report;
  }
  check_step(options.run);
  const Program program = with_inputs(model, options.run);
  const Program traced = with_assigned_numbers(program, platform.framework);
  report.graphs.push_back(judge_forward(traced, standard_registry(), options.policy));
  WorkspacePlanners planners;
  const auto planned = planners.for_run(options.run.workspaces, platform);
  StepOptions step = options.run.step;
  step.workspaces = planned.get();
  const WholeNetworkTrace run = run_whole_network(program, platform, step, options.warmup);
  report.graphs.push_back(judge_run(run.trace, Phase::backward, standard_registry()));
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
    report.tree = run_tree(traced, platform, step, report.graphs[0], report.graphs[1], allocator);
  }
  return report;
}

}  // namespace metaprof
