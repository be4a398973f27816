#include "estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "allocator/caching_allocator.h"
#include "allocator/exact_allocator.h"
#include "core/error.h"
#include "estimate/compiled_model.h"
#include "estimate/guessed_lifetimes.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/sizes.h"
#include "meta/source/waiting_results.h"
#include "meta/step/step.h"

namespace metaprof {
namespace {

AllocConf conf_of(const RunOptions& options, const Platform& platform) {
  if (platform.hardware.is_cpu() && !options.alloc_conf.empty())
    fail("--alloc-conf has no effect on {}: the host's memory is not cached", platform.hardware.name);
  return parse_alloc_conf(allocator_settings(options, platform.framework));
}

// The framework caches memory of CUDA devices; that of the host is taken and given back as it is needed.
// `memory` is what the allocator can have: the rest of the device is taken by others.
std::unique_ptr<DeviceAllocator> make_allocator(const RunOptions& options, const Platform& platform,
                                                Bytes memory) {
  const auto free = static_cast<uint64_t>(memory.count);
  const uint64_t total = std::max(free, static_cast<uint64_t>(platform.hardware.memory.count));
  const AllocConf conf = conf_of(options, platform);
  if (platform.hardware.is_cpu()) return std::make_unique<ExactAllocator>();
  return std::make_unique<CachingAllocator>(
      CachingAllocatorOptions{.conf = conf,
                              .device = {.capacity = total, .used_by_others = total - free},
                              .order = platform.framework.free_block_order});
}

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
          .failure = cudnn.failure};
}

// Every step makes the same calls of libraries.
void count_all_steps(WorkspaceSources& workspaces, int run, int all) {
  for (int64_t WorkspaceSources::*number :
       {&WorkspaceSources::table, &WorkspaceSources::planned, &WorkspaceSources::unplanned_calls,
        &WorkspaceSources::table_calls, &WorkspaceSources::planned_calls, &WorkspaceSources::rule_calls})
    workspaces.*number = workspaces.*number / run * all;
}

// A run of a program. What is `repeated` is not in the trace: steps as its last one.
struct ModelRun {
  Trace trace;
  int repeated = 0;
  std::vector<Event> fused = {};  // as in Estimate
};

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

WaitingResults waiting_in(const Program& program) {
  return [&](size_t failed) { return waiting_results(program, failed); };
}

void read_memory(const Program& program, const Trace& trace, int repeated, const RunOptions& options,
                 const Platform& platform, ProfileReport& report) {
  const OutsideAllocator outside = outside_of(options, platform);
  report.outside = outside.most;
  report.outside_least = outside.least;
  report.outside_source = outside.source;
  report.margin = margin_of(options);
  const Bytes available = available_memory(options, platform);
  report.memory = profile_memory(trace, platform.device(), *make_allocator(options, platform, available),
                                 waiting_in(program), repeated);
  if (!report.memory.phases.out_of_memory) return;
  const Phases unlimited =
      replay(trace, platform.device(), *make_allocator(options, platform, unlimited_memory()), {}, repeated);
  if (unlimited.out_of_memory) return;
  report.needed_memory = Bytes{unlimited.peak.reserved_bytes.peak};
  report.needed_allocated = Bytes{unlimited.peak.allocated_bytes.peak};
}

// Everything that the report says of a trace.
void read_trace(const Program& program, const Trace& trace, int repeated, const RunOptions& options,
                const Platform& platform, ProfileReport& report) {
  read_memory(program, trace, repeated, options, platform, report);
  if (options.step.execution != Execution::graph)
    report.guessed = guessed_lifetimes(program, trace, platform.device());
  report.counts = count(trace, rates_of(platform, options.step.environment));
}

// The types of floating parameters, where they are not all f32.
std::string parameter_types(const Program& program) {
  std::set<std::string> types;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::parameter || input.value == kNoValue) continue;
    const auto& tensor = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (tensor && is_floating(tensor->dtype))
      types.emplace(tensor->dtype == DType::f16 ? "fp16" : short_name(tensor->dtype));
  }
  if (types.empty() || types == std::set<std::string>{"f32"}) return "";
  std::string text;
  for (const std::string& type : types)
    text += (text.empty() ? "" : " and ") + (type == "f32" ? "fp32" : type);
  return text;
}

// What a configuration's decoder gives back beside its logits: two tensors of each layer, [batch, heads, tokens, width].
std::vector<CacheRow> kv_cache_of(const Program& program, Precision precision) {
  std::vector<CacheRow> rows;
  for (const ProgramOutput& output : program.outputs) {
    if (!output.name.starts_with("past_key_values.")) continue;
    const auto& facts = program.graph.values[static_cast<size_t>(output.operand.value)].tensor;
    const auto layer = static_cast<int64_t>(rows.size());
    if (output.name.ends_with(".keys"))
      rows.push_back({.layer = layer, .tokens = facts->sizes[2], .bytes = {}});
    const DType dtype = facts->dtype == DType::f32 ? state_dtype(precision) : facts->dtype;
    rows.back().bytes += Bytes{facts->sizes[0] * facts->strides[0] * element_size(dtype)};
  }
  return rows;
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

std::set<std::string> usual_options(const RunOptions& options) {
  const RunOptions usual;
  std::set<std::string> names;
  for (const RunOption& option : run_options())
    if (option.value(options) == option.value(usual)) names.emplace(option.name);
  return names;
}

// A captured program has steps of its own.
void drop_step_options(ProfileReport& report) {
  std::erase_if(report.options,
                [](const auto& given) { return run_option(given.first).group == RunOption::Group::step; });
}

}  // namespace

std::vector<InputRow> inputs_of(const Program& program) {
  std::vector<InputRow> rows;
  for (const ProgramInput& input : program.inputs) {
    if (input.kind != ProgramInput::Kind::user || input.value == kNoValue) continue;
    const auto& tensor = program.graph.values[static_cast<size_t>(input.value)].tensor;
    if (tensor) rows.push_back({input.name, tensor->dtype, tensor->sizes});
  }
  return rows;
}

OutsideAllocator outside_of(const RunOptions& options, const Platform& platform) {
  if (options.context.empty()) return outside_allocator(platform);
  const Bytes given =
      platform.device().is_cpu() || options.context == "none" ? Bytes() : parse_size(options.context);
  return {.least = given, .most = given, .source = {}};
}

double margin_of(const RunOptions& options) {
  const double margin = parse_share(options.margin, "--margin");
  if (margin >= 1) fail("--margin: {} leaves nothing", options.margin);
  return margin;
}

Bytes available_memory(const RunOptions& options, const Platform& platform) {
  const auto usable =
      static_cast<int64_t>(static_cast<double>(platform.hardware.memory.count) * (1 - margin_of(options)));
  return {std::max<int64_t>(0, usable - outside_of(options, platform).most.count)};
}

Rates rates_of(const Platform& platform, const std::map<std::string, std::string>& environment) {
  const Hardware& hardware = platform.hardware;
  // Products of f64 have matrix engines of twice the rate on A100 and H100: 19.5 beside 9.7 TFLOPS and 67 beside 34 on
  // the vendor's data sheets.
  const bool f64_engine = hardware.sm == 80 || hardware.sm == 90;
  Rates rates{.bytes_per_second = hardware.bandwidth,
              .flops_f64 = hardware.flops_f64 * (f64_engine ? 2 : 1),
              .flops_f32 = hardware.flops_f32,
              .flops_f16 = hardware.flops_f16,
              .flops_tf32 = hardware.is_cpu() ? 0 : hardware.flops_tf32,
              .multiprocessors = hardware.multiprocessors,
              .sm = hardware.sm,
              .loads_eight_bytes = hardware.sm >= 90 && !platform.framework.loads_sixteen_bytes};
  const auto says = [&](const char* name, const char* value) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second == value;
  };
  // The framework reads the first (aten/src/ATen/Context.cpp), cuBLAS and cuDNN the second, whose 0 switches TF32 off.
  if (says("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")) rates.tf32_products = true;
  if (says("NVIDIA_TF32_OVERRIDE", "0")) rates.tf32_products = rates.tf32_in_cudnn = false;
  return rates;
}

Bytes unlimited_memory() { return {DeviceMemory::kMostMemory}; }

std::vector<std::pair<std::string, OptionValue>> option_values(const RunOptions& options) {
  std::vector<std::pair<std::string, OptionValue>> values;
  for (const RunOption& option : run_options())
    if (option.name != "device") values.emplace_back(option.name, option.value(options));
  return values;
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

Phases replay_trace(const Trace& trace, const RunOptions& options, const Platform& platform, Bytes memory,
                    const Program* program) {
  return replay(trace, platform.device(), *make_allocator(options, platform, memory),
                program ? waiting_in(*program) : WaitingResults());
}

Requests requests_of_run(const Program& program, const RunOptions& options, const Platform& platform,
                         WorkspacePlanners& planners, WorkspaceSources& workspaces) {
  const ModelRun run = run_until_alike(program, options, platform, planners, workspaces);
  Requests requests = requests_of(run.trace, run.trace.events, platform.device());
  repeat_last_step(requests, run.repeated);
  return requests;
}

Phases replay_requests(const Requests& requests, const RunOptions& options, const Platform& platform,
                       Bytes memory) {
  return replay(requests, *make_allocator(options, platform, memory));
}

Verdict verdict_of(const RunOptions& options, const Platform& platform, const Phases& phases,
                   std::optional<Bytes> needed) {
  const Verdict device{.device = platform.hardware.name,
                       .outside = outside_of(options, platform).most,
                       .margin = margin_of(options),
                       .memory = platform.hardware.memory};
  return judge(device, phases, needed);
}

namespace {

// The program with its inputs, run; what was run goes into the report.
ModelRun run_reported(const Model& model, const RunOptions& options, const Platform& platform,
                      WorkspacePlanners& planners, CompiledModel* compiled, StepsToRun steps,
                      ProfileReport& report) {
  // A program is copied only where it changes: a captured one is large.
  const std::optional<Program> changed = changed_inputs(model, options);
  const Program& program = changed ? *changed : model.program;
  report.module_types = program.module_types;
  report.options = option_values(options);
  if (program.captured) drop_step_options(report);
  report.as_usual = usual_options(options);
  report.inputs = inputs_of(program);
  report.kv_cache = kv_cache_of(program, options.step.precision);
  report.parameter_types = parameter_types(program);
  try {
    if (steps == StepsToRun::until_alike)
      return run_until_alike(program, options, platform, planners, report.workspaces);
    return {run_model(program, options, platform, planners, report.workspaces, compiled)};
  } catch (const Error& error) {
    fail("{}{}", error.what(), changed ? hint_of_settings(model.program, program, options) : "");
  }
}

// FLOPs of gradients of the first step that nobody asked for: those of a step that computes them all, less its own.
Flops not_computed(const Model& model, const RunOptions& options, const Platform& platform,
                   WorkspacePlanners& planners, const Counts& counts) {
  RunOptions all = options;
  all.step.trims_gradients = false;
  all.step.steps = 1;
  const std::optional<Program> changed = changed_inputs(model, options);
  WorkspaceSources workspaces;
  const Trace trace = run_model(changed ? *changed : model.program, all, platform, planners, workspaces);
  return {count(trace, {}).total.all.total().count - counts.total.all.total().count};
}

bool ran_out_in_repeated_step(const Phases& phases, int run) {
  return phases.out_of_memory && phases.out_of_memory->part.step >= static_cast<uint32_t>(run);
}

}  // namespace

Estimate estimate(const Model& model, const RunOptions& given, WorkspacePlanners& planners,
                  CompiledModel* compiled, StepsToRun steps) {
  const RunOptions options = as_captured(given, model.program);
  Estimate result{
      .platform = platform_of(options, model.program), .options = options, .trace = {}, .report = {}};
  const Platform& platform = result.platform;
  ProfileReport& report = result.report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.device_title = platform.hardware.title;
  report.device_memory = platform.hardware.memory;
  const FrameworkChoice framework = framework_for(options, model.program);
  report.framework = to_string(framework.version);
  report.framework_reason = framework.reason;
  report.of_run = options_of_run(given, model.program);
  ModelRun run = model.is_trace() ? ModelRun{*model.trace}
                                  : run_reported(model, options, platform, planners, compiled, steps, report);
  result.trace = std::move(run.trace);
  if (!model.is_trace() && !model.program.captured) report.steps_run = options.step.steps - run.repeated;
  result.repeated = run.repeated;
  result.fused = std::move(run.fused);
  read_trace(model.program, result.trace, run.repeated, options, platform, report);
  // What an error lets go is known of the steps in the trace.
  if (run.repeated > 0 && ran_out_in_repeated_step(report.memory.phases, report.steps_run))
    return estimate(model, given, planners, compiled);
  if (!model.is_trace() && !options.step.grad.empty())
    report.not_computed = not_computed(model, options, platform, planners, report.counts);
  report.workspaces.rule = report.memory.workspaces - report.workspaces.table - report.workspaces.planned;
  return result;
}

Estimate estimate(const Model& model, const RunOptions& options, StepsToRun steps) {
  WorkspacePlanners planners;
  return estimate(model, options, planners, nullptr, steps);
}

}  // namespace metaprof
