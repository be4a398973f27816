#include "estimate/estimate.h"

#include "allocator/caching_allocator.h"
#include "allocator/exact_allocator.h"
#include "core/error.h"
#include "meta/step/step.h"

namespace metaprof {
namespace {

AllocConf conf_of(const RunOptions& options, const Platform& platform) {
  if (platform.hardware.is_cpu() && !options.alloc_conf.empty())
    fail("--alloc-conf has no effect on {}: the host's memory is not cached", platform.hardware.name);
  return parse_alloc_conf(options.alloc_conf);
}

// The framework caches memory of CUDA devices; that of the host is taken and given back as it is needed.
std::unique_ptr<DeviceAllocator> make_allocator(const RunOptions& options, const Platform& platform,
                                                Bytes memory) {
  const AllocConf conf = conf_of(options, platform);
  if (platform.hardware.is_cpu()) return std::make_unique<ExactAllocator>();
  return std::make_unique<CachingAllocator>(
      CachingAllocatorOptions{.conf = conf,
                              .device = {.capacity = static_cast<uint64_t>(memory.count)},
                              .order = platform.framework.free_block_order});
}

WorkspaceSources sources_of(const PlannedWorkspaces& planned, const CudnnState& cudnn) {
  const auto& table = planned.answers(WorkspaceSource::table);
  const auto& library = planned.answers(WorkspaceSource::planned);
  const auto& rule = planned.answers(WorkspaceSource::rule);
  return {.table = table.bytes,
          .planned = library.bytes,
          .unplanned_calls = planned.unanswered(),
          .table_calls = table.count,
          .planned_calls = library.count,
          .rule_calls = rule.count,
          .cudnn = cudnn.version,
          .failure = cudnn.failure};
}

void read_memory(const Trace& trace, const RunOptions& options, const Platform& platform,
                 ProfileReport& report) {
  report.memory =
      profile_memory(trace, platform.device(), *make_allocator(options, platform, platform.hardware.memory));
  if (!report.memory.phases.out_of_memory) return;
  const Phases phases = replay_trace(trace, options, platform, unlimited_memory());
  if (!phases.out_of_memory) report.needed_memory = Bytes{phases.peak.reserved_bytes.peak};
}

}  // namespace

Rates rates_of(const Hardware& hardware) {
  return {.bytes_per_second = hardware.bandwidth,
          .flops_f64 = hardware.flops_f64,
          .flops_f32 = hardware.flops_f32,
          .flops_f16 = hardware.flops_f16};
}

Bytes unlimited_memory() { return {DeviceMemory::kMostMemory}; }

std::vector<std::pair<std::string, OptionValue>> option_values(const RunOptions& options) {
  std::vector<std::pair<std::string, OptionValue>> values;
  for (const RunOption& option : run_options())
    if (option.name != "device") values.emplace_back(option.name, option.value(options));
  return values;
}

Trace run_model(const Program& program, const RunOptions& options, const Platform& platform,
                WorkspacePlanners& planners, WorkspaceSources& workspaces) {
  const auto planned = planners.for_run(options.workspaces, platform);
  StepOptions step = options.step;
  step.workspaces = planned.get();
  Trace trace = run_steps(program, platform, step);
  if (planned) {
    const bool asked =
        planned->answers(WorkspaceSource::rule).count + planned->answers(WorkspaceSource::planned).count > 0;
    workspaces = sources_of(*planned, asked ? planners.cudnn(platform) : CudnnState());
  }
  return trace;
}

Phases replay_trace(const Trace& trace, const RunOptions& options, const Platform& platform, Bytes memory) {
  return replay(trace, platform.device(), *make_allocator(options, platform, memory));
}

Estimate estimate(const Model& model, const RunOptions& options, WorkspacePlanners& planners) {
  Estimate result{.platform = device_of(options), .options = options, .trace = {}, .report = {}};
  const Platform& platform = result.platform;
  ProfileReport& report = result.report;
  report.model = model.name;
  report.device = platform.hardware.name;
  report.device_title = platform.hardware.title;
  report.device_memory = platform.hardware.memory;
  if (model.is_trace()) {
    result.trace = *model.trace;
  } else {
    const Program program = with_inputs(model, options);
    report.module_types = program.module_types;
    report.options = option_values(options);
    result.trace = run_model(program, options, platform, planners, report.workspaces);
  }
  read_memory(result.trace, options, platform, report);
  report.counts = count(result.trace, rates_of(platform.hardware));
  report.workspaces.rule = report.memory.workspaces - report.workspaces.table - report.workspaces.planned;
  return result;
}

Estimate estimate(const Model& model, const RunOptions& options) {
  WorkspacePlanners planners;
  return estimate(model, options, planners);
}

}  // namespace metaprof
