#include "estimate/model_run.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "estimate/compiled_model.h"
#include "estimate/prepare/memory_limit.h"
#include "step/step.h"

namespace metaprof {
namespace {

WorkspaceSources sources_of(const PlannedWorkspaces* planned, WorkspacePlanners& planners,
                            const Platform& platform) {
  if (!planned) return {};
  const auto& table = planned->answers(WorkspaceSource::table);
  const auto& library = planned->answers(WorkspaceSource::planned);
  const auto& rule = planned->answers(WorkspaceSource::rule);
  const CudnnState cudnn = rule.count + library.count > 0 ? planners.cudnn(platform) : CudnnState();
  return {.table = table.bytes,
          .planned = library.bytes,
          .unplanned_calls = planned->counts().unanswered,
          .table_calls = table.count,
          .planned_calls = library.count,
          .rule_calls = rule.count,
          .cudnn = cudnn.version,
          .failure = cudnn.failure,
          .sizes = planned->sizes()};
}

// Every step makes the same calls of libraries.
void count_all_steps(WorkspaceSources& workspaces, int run, int all) {
  for (int64_t WorkspaceSources::*number :
       {&WorkspaceSources::table, &WorkspaceSources::planned, &WorkspaceSources::unplanned_calls,
        &WorkspaceSources::table_calls, &WorkspaceSources::planned_calls, &WorkspaceSources::rule_calls})
    workspaces.*number = workspaces.*number / run * all;
}

// Parameters and their gradients take more than a quarter of the memory. With an optimizer's state (Adam's is as large
// again) that is half, and so little is left for the rest that memory may run out.
bool may_run_out(const Program& program, const RunOptions& options, const Platform& platform) {
  Bytes parameters;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::parameter || input.value == kNoValue) continue;
    const auto& tensor = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (!tensor) continue;
    const DType dtype = tensor->dtype == DType::f32 ? state_dtype(options.step.precision) : tensor->dtype;
    parameters += Bytes{numel(tensor->sizes) * element_size(dtype)};
  }
  return parameters.count > available_memory(options, platform).count / 8;
}

// The steps with the optimizer that is asked for and, in turn, its fused code; nothing where it has none, or is of no use.
std::optional<StepsInTurn> run_with_fused(const Program& program, const RunOptions& options,
                                          const Platform& platform, WorkspacePlanners& planners,
                                          WorkspaceSources& workspaces) try {
  const OptimizerChoice choices[] = {{options.step.optimizer, options.step.optimizer_impl},
                                     {options.step.optimizer, OptimizerImpl::fused}};
  if (choices[0] == choices[1] || !has_fused_code(options.step.optimizer) ||
      !may_run_out(program, options, platform))
    return std::nullopt;
  return run_in_turn(program, options, platform, choices, planners, workspaces);
} catch (const Error&) {  // parameters that fused code does not take
  return std::nullopt;
}

// --set changes one input; others that had the same size may have to change with it.
std::string hint_of_settings(const Program& exported, const Program& program, const RunOptions& options) {
  if (options.settings.empty()) return "";
  const std::vector<InputRow> before = inputs_of(exported), now = inputs_of(program);
  std::string same;
  for (size_t i = 0; i < before.size() && i < now.size(); ++i)
    if (before[i].sizes == now[i].sizes)
      same +=
          fmt::format("{}{} {}", same.empty() ? "" : ", ", now[i].name, to_string(SizesView(now[i].sizes)));
  if (same.empty() || before.size() != now.size()) return "";
  return fmt::format("; --set left as they were: {} (--batch and --sequence change all inputs)", same);
}

// The first step with the gradients of all parameters and inputs, whichever were asked for.
Trace run_with_all_gradients(const PreparedRun& prepared, WorkspacePlanners& planners) {
  RunOptions all = prepared.options;
  all.step.trims_gradients = false;
  all.step.steps = 1;
  WorkspaceSources workspaces;
  return run_model(prepared.program(), all, prepared.platform, planners, workspaces);
}

}  // namespace

ModelRun run_until_alike(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces) {
  const OptimizerChoice own{options.step.optimizer, options.step.optimizer_impl};
  auto steps = run_with_fused(program, options, platform, planners, workspaces);
  if (!steps) steps = run_in_turn(program, options, platform, {&own, 1}, planners, workspaces);
  if (!steps) return {run_model(program, options, platform, planners, workspaces)};
  ModelRun run{std::move(steps->trace), options.step.steps - steps->steps};
  if (steps->events.size() > 1) run.fused = std::move(steps->events[1]);
  return run;
}

Trace run_model(const Program& program, const RunOptions& options, const Platform& platform,
                WorkspacePlanners& planners, WorkspaceSources& workspaces, CompiledModel* compiled) {
  const auto planned = planners.for_run(options.workspaces, platform);
  StepOptions step = options.step;
  step.workspaces = planned.get();
  std::optional<CompiledModel> own;
  if (step.execution == Execution::graph && !compiled) compiled = &own.emplace(options, platform);
  Trace trace = run_steps(program, platform, step, compiled ? compiled->runner() : MakeModelRunner());
  workspaces = sources_of(planned.get(), planners, platform);
  return trace;
}

std::optional<StepsInTurn> run_in_turn(const Program& program, const RunOptions& options,
                                       const Platform& platform, std::span<const OptimizerChoice> optimizers,
                                       WorkspacePlanners& planners, WorkspaceSources& workspaces) {
  if (!can_take_turns(program, options.step)) return std::nullopt;
  const auto planned = planners.for_run(options.workspaces, platform);
  StepOptions step = options.step;
  step.workspaces = planned.get();
  std::optional<StepsInTurn> steps = run_in_turn(program, platform, step, optimizers);
  workspaces = sources_of(planned.get(), planners, platform);
  if (steps) count_all_steps(workspaces, steps->steps, step.steps);
  return steps;
}

Requests requests_of_run(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces) {
  const ModelRun run = run_until_alike(program, options, platform, planners, workspaces);
  Requests requests = requests_of(run.trace, run.trace.events, platform.device());
  repeat_last_step(requests, run.repeated);
  return requests;
}

ModelRun run(const PreparedRun& prepared, WorkspacePlanners& planners, CompiledModel* compiled,
             StepsToRun steps) {
  if (prepared.model.is_trace()) return {*prepared.model.trace};
  const Program& program = prepared.program();
  ModelRun result;
  WorkspaceSources workspaces;
  try {
    if (steps == StepsToRun::until_alike && !compiled)
      result = run_until_alike(program, prepared.options, prepared.platform, planners, workspaces);
    else
      result.trace = run_model(program, prepared.options, prepared.platform, planners, workspaces, compiled);
  } catch (const Error& error) {
    fail("{}{}", error.what(),
         prepared.changed ? hint_of_settings(prepared.model.program, program, prepared.options) : "");
  }
  result.workspaces = std::move(workspaces);
  if (!prepared.options.step.grad.empty()) result.all_gradients = run_with_all_gradients(prepared, planners);
  return result;
}

}  // namespace metaprof
