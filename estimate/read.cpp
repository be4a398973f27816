#include "estimate/read.h"

#include <set>
#include <utility>

#include "estimate/guessed_lifetimes.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/prepare/rates.h"
#include "estimate/replay.h"

namespace metaprof {
namespace {

void read_memory(const PreparedRun& prepared, const ModelRun& run, ProfileReport& report) {
  const Platform& platform = prepared.platform;
  report.outside = prepared.memory.outside.most;
  report.outside_least = prepared.memory.outside.least;
  report.outside_source = prepared.memory.outside.source;
  report.margin = prepared.memory.margin;
  report.memory = profile_memory(run.trace, platform.device(),
                                 *make_allocator(prepared.options, platform, prepared.memory.available),
                                 waiting_in(prepared.program()), run.repeated);
  if (!report.memory.phases.out_of_memory) return;
  const Phases unlimited =
      replay(run.trace, platform.device(), *make_allocator(prepared.options, platform, unlimited_memory()),
             {}, run.repeated);
  if (unlimited.out_of_memory) return;
  report.needed_memory = Bytes{unlimited.peak.reserved_bytes.peak};
  report.needed_allocated = Bytes{unlimited.peak.allocated_bytes.peak};
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

// What was run, and on what.
void describe(const PreparedRun& prepared, ProfileReport& report) {
  const Hardware& hardware = prepared.platform.hardware;
  report.model = prepared.model.name;
  report.device = hardware.name;
  report.device_title = hardware.title;
  report.device_memory = hardware.memory;
  const FrameworkChoice framework = framework_for(prepared.options, prepared.model.program);
  report.framework = to_string(framework.version);
  report.framework_reason = framework.reason;
  report.of_run = options_of_run(prepared.given, prepared.model.program);
}

// What a trace does not tell: a trace that was kept has no program.
void describe_program(const PreparedRun& prepared, ProfileReport& report) {
  const Program& program = prepared.program();
  report.module_types = program.module_types;
  // A module was captured with the options that were asked for, and any other program with its own.
  const bool of_module = program.captured && !program.captured->module.empty();
  report.options = option_values(of_module ? prepared.given : prepared.options);
  if (program.captured && !of_module) drop_step_options(report);
  report.as_usual = usual_options(prepared.options);
  report.inputs = inputs_of(program);
  report.kv_cache = kv_cache_of(program, prepared.options.step.precision);
  report.parameter_types = parameter_types(program);
}

// FLOPs of gradients of the first step that nobody asked for: those of a step that computes them all, less its own.
Flops not_computed(const Counts& own, const Counts& all) {
  return {all.total.all.total().count - own.total.all.total().count};
}

}  // namespace

Estimate read(const PreparedRun& prepared, ModelRun run) {
  const StepOptions& step = prepared.options.step;
  Estimate result{.platform = prepared.platform, .options = prepared.options, .trace = {}, .report = {}};
  ProfileReport& report = result.report;
  describe(prepared, report);
  if (!prepared.model.is_trace()) describe_program(prepared, report);
  if (!prepared.model.is_trace() && !prepared.model.program.captured)
    report.steps_run = step.steps - run.repeated;
  read_memory(prepared, run, report);
  if (step.execution != Execution::graph)
    report.guessed = guessed_lifetimes(prepared.program(), run.trace, prepared.platform.device());
  report.counts =
      count(run.trace, rates_of(prepared.platform, step.environment, measured_rates(prepared.options)));
  if (run.all_gradients) report.not_computed = not_computed(report.counts, count(*run.all_gradients, {}));
  report.workspaces = std::move(run.workspaces);
  report.workspaces.rule = report.memory.workspaces - report.workspaces.table - report.workspaces.planned;
  result.trace = std::move(run.trace);
  result.repeated = run.repeated;
  result.fused = std::move(run.fused);
  return result;
}

}  // namespace metaprof
