#include "estimate/compiled/cudagraphs.h"

#include "core/error.h"
#include "estimate/model_run.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/prepare.h"
#include "meta/ops/all.h"
#include "meta/optim/optimizer.h"
#include "program/edits/model_of_steps.h"
#include "step/compiled/aot/assigned_numbers.h"
#include "step/compiled/aot/graph_break.h"
#include "step/whole_network.h"

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
}

// Only the whole step as one graph has the optimizer in it.
void check_optimizer(const CudagraphsOptions& options) {
  if (options.whole_network && !can_capture_whole_step(options.run))
    fail(
        "--optimizer {}: it counts its steps on the host, so that the framework refuses to capture the whole "
        "step; "
        "sgd, sgd-momentum and adamw-capturable can be captured; or ask for --tree or --graphed-callables",
        options.run.step.optimizer);
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

void judge_steps(const Model& model, const RunOptions& options, const Platform& platform,
                 CudagraphsReport& report) {
  RunOptions run = options;
  run.step = {};
  run.step.environment = options.step.environment;
  WorkspacePlanners planners;
  WorkspaceSources workspaces;
  const Trace trace = run_model(model.program, run, platform, planners, workspaces);
  for (const Phase phase : {Phase::forward, Phase::backward})
    report.graphs.push_back(judge_run(trace, phase, standard_registry()));
}

struct Settings {
  const CudagraphsOptions& asked;
  const RunOptions run;  // where a captured program ran, if nothing else was asked for
  const Platform platform;
};

// `program`: as it runs plainly; `captured`: as it runs while it is traced or captured.
void capture(const Program& program, const Program& captured, const Settings& settings,
             CudagraphsReport& report) {
  const auto& [options, run_options, platform] = settings;
  const Program traced = with_assigned_numbers(captured, platform.framework);
  report.graphs.push_back(judge_forward(traced, standard_registry(), options.policy));
  WorkspacePlanners planners;
  const auto planned = planners.for_run(run_options.workspaces, platform);
  StepOptions step = run_options.step;
  step.workspaces = planned.get();
  const WholeNetworkTrace run = run_whole_network(program, captured, platform, step, options.warmup);
  report.graphs.push_back(judge_run(run.trace, Phase::backward, standard_registry()));
  if (options.whole_network) {
    CachingAllocator allocator = allocator_of(run_options, platform);
    report.whole_network = measure(run, platform.device(), allocator);
    note_refusals(report);
  }
  step.steps = options.tree_steps;
  if (options.graphed_callables) {
    CachingAllocator allocator = allocator_of(run_options, platform);
    report.graphed_callables =
        measure(run_graphed_callables(program, captured, platform, step, options.warmup), platform.device(),
                allocator);
  }
  if (options.tree) {
    CachingAllocator allocator = allocator_of(run_options, platform);
    report.tree = run_tree(traced, platform, step, report.graphs[0], report.graphs[1], allocator);
  }
}

// What a captured program's forward calls is as it was in the run.
void expect_own_forward(const RunOptions& options, const Program& program) {
  for (const std::string_view name :
       {"precision", "accumulate", "checkpoint", "checkpoint_reentrant", "channels_last"}) {
    const RunOption& option = run_option(name);
    if (option.value(options) != option.value(RunOptions()))
      fail("{}: {} was captured from a run, whose forward is its own", option.flag(), program.origin);
  }
}

// Where its model cannot be run alone, only what its steps did can be judged.
void capture_steps(const Model& model, const Settings& settings, CudagraphsReport& report) {
  expect_own_forward(settings.run, model.program);
  CudagraphsReport of_model = report;
  try {
    const Program program = model_of_steps(with_inputs(model, settings.run));
    capture(program, program, settings, of_model);
    if (of_model.tree && of_model.tree->not_modelled.empty() && calls_recurrent_network(program))
      of_model.tree->not_modelled =
          "where the compiler leaves a model to Python is told from the source lines of an export";
    report = std::move(of_model);
    report.notes.push_back(
        model.name +
        " was captured from a run: its last step's forward is what is captured here, with "
        "the lifetimes of the run; what the program holds beside its model, its inputs and "
        "its optimizer is not counted");
  } catch (const Error& error) {
    judge_steps(model, settings.run, settings.platform, report);
    report.notes.push_back(std::string(error.what()) + ". So " + model.name +
                           ", which was captured from a run, is judged by what its steps did: inputs that it "
                           "writes to are not looked for, and what its steps would take as graphs is not "
                           "modelled; give an export of the model for both");
  }
}

}  // namespace

bool can_capture_whole_step(const RunOptions& options) {
  return options.step.optimizer == "none" || step_can_be_captured(options.step.optimizer);
}

CudagraphsReport cudagraphs(const Model& model, const CudagraphsOptions& options) {
  if (model.is_trace()) fail("{}: a trace has no program that could be captured: give the model", model.name);
  const RunOptions run = as_captured(options.run, model.program);
  const Settings settings{options, run, platform_of(run, model.program)};
  if (settings.platform.hardware.is_cpu())
    fail("--device {}: CUDA graphs are of CUDA devices", options.run.device);
  check_step(options.run);
  check_optimizer(options);
  CudagraphsReport report;
  report.model = model.name;
  report.device = settings.platform.hardware.name;
  report.options = option_values(options.run);
  report.warmup = options.warmup;
  if (model.program.captured)
    capture_steps(model, settings, report);
  else
    capture(with_inputs(model, run), traced_with_inputs(model, run), settings, report);
  return report;
}

}  // namespace metaprof
