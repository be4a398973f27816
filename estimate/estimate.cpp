#include "estimate/estimate.h"

#include "estimate/compiled_model.h"
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
  std::optional<CompiledModel> own;
  if (prepared.options.step.execution == Execution::graph && !compiled && !model.is_trace())
    compiled = &own.emplace(prepared.options, prepared.platform);
  Estimate result = read(prepared, run(prepared, planners, compiled, steps));
  if (ran_out_in_repeated_step(result))
    result = read(prepared, run(prepared, planners, compiled, StepsToRun::all));
  if (compiled) result.report.graph = compiled->scope(prepared.program().followed);
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
  const auto with = [&](auto&& change) {
    RunOptions changed = options;
    change(changed.step);
    return estimate(model, changed, planners, compiled, steps);
  };
  if (!options.step.trips && has_region(model.program.graph, RegionCall::Kind::loop)) {
    Estimate result = with([](StepOptions& step) { step.trips = 1; });
    const Estimate longer = with([&](StepOptions& step) {
      step.trips = 2;
      if (result.report.branches) step.condition = result.report.branches->shown ? "true" : "false";
    });
    result.report.loops = {.one_trip = execution_figures(result.report),
                           .two_trips = execution_figures(longer.report)};
    return result;
  }
  if (!options.step.condition.empty() || !has_region(model.program.graph, RegionCall::Kind::branch))
    return one_way(model, options, planners, compiled, steps);
  Estimate otherwise = with([](StepOptions& step) { step.condition = "false"; });
  Estimate result = with([](StepOptions& step) { step.condition = "true"; });
  BranchComparison branches{.when_true = execution_figures(result.report),
                            .when_false = execution_figures(otherwise.report)};
  // A run that ends for want of memory has not reached its peak.
  const bool true_fails = result.report.memory.phases.out_of_memory.has_value(),
             false_fails = otherwise.report.memory.phases.out_of_memory.has_value();
  branches.shown =
      true_fails == false_fails ? branches.when_true.peak >= branches.when_false.peak : true_fails;
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
