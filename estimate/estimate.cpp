#include "estimate/estimate.h"

#include "estimate/prepare/prepare.h"
#include "estimate/read.h"
#include "program/higher_order.h"

namespace metaprof {
namespace {

// What an error frees is known of the steps in the trace alone.
bool ran_out_in_repeated_step(const Estimate& estimate) {
  const auto& failed = estimate.report.memory.phases.out_of_memory;
  return estimate.repeated > 0 && failed &&
         failed->part.step >= static_cast<uint32_t>(estimate.report.steps_run);
}

Estimate one_way(const Model& model, const RunOptions& options, WorkspacePlanners& planners,
                 CompiledModel* compiled, StepsToRun steps) {
  const PreparedRun prepared = prepare(model, options);
  Estimate result = read(prepared, run(prepared, planners, compiled, steps));
  if (ran_out_in_repeated_step(result))
    result = read(prepared, run(prepared, planners, compiled, StepsToRun::all));
  return result;
}

}  // namespace

ExecutionFigures execution_figures(const ProfileReport& report) {
  return {.peak = {report.memory.phases.peak.allocated_bytes.peak},
          .saved = report.memory.saved.bytes,
          .flops = report.counts.total.all.total(),
          .kernels = report.counts.kernels};
}

Estimate estimate(const Model& model, const RunOptions& options, WorkspacePlanners& planners,
                  CompiledModel* compiled, StepsToRun steps) {
  if (!options.step.condition.empty() || !has_branches(model.program.graph))
    return one_way(model, options, planners, compiled, steps);
  RunOptions with = options;
  with.step.condition = "false";
  Estimate otherwise = one_way(model, with, planners, compiled, steps);
  with.step.condition = "true";
  Estimate result = one_way(model, with, planners, compiled, steps);
  BranchComparison branches{.when_true = execution_figures(result.report),
                            .when_false = execution_figures(otherwise.report)};
  branches.shown = branches.when_true.peak.count >= branches.when_false.peak.count;
  if (!branches.shown) result = std::move(otherwise);
  result.report.branches = branches;
  return result;
}

Estimate estimate(const Model& model, const RunOptions& options, StepsToRun steps) {
  WorkspacePlanners planners;
  return estimate(model, options, planners, nullptr, steps);
}

Estimate estimate_on(const Model& model, const RunOptions& options, const Hardware& hardware,
                     Bytes available) {
  PreparedRun prepared = prepare(model, options);
  prepared.platform.hardware = hardware;
  const Bytes used = hardware.memory - available;
  prepared.memory = {.outside = {.least = used, .most = used, .source = "what the device says"},
                     .available = available};
  WorkspacePlanners planners;
  return read(prepared, run(prepared, planners, nullptr, StepsToRun::all));
}

}  // namespace metaprof
