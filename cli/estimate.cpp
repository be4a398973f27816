#include "cli/estimate.h"

#include <fmt/format.h>

#include <filesystem>

#include "allocator/caching_allocator.h"
#include "allocator/exact_allocator.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/model_inputs.h"
#include "cli/sizes.h"
#include "core/error.h"
#include "meta/platform/cudnn/cudnn_planner.h"
#include "meta/platform/workspace_table.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

// The framework caches memory of CUDA devices; that of the host is taken and given back as it is needed.
std::unique_ptr<DeviceAllocator> make_allocator(const DeviceProfile& device, const AllocConf& conf,
                                                Bytes memory) {
  if (device.type == DeviceType::cpu) return std::make_unique<ExactAllocator>();
  return std::make_unique<CachingAllocator>(
      CachingAllocatorOptions{.conf = conf, .device = {.capacity = static_cast<uint64_t>(memory.count)}});
}

AllocConf conf_of(const ProfileOptions& options, const DeviceProfile& device) {
  if (device.type == DeviceType::cpu && !options.alloc_conf.empty())
    fail("--alloc-conf has no effect on {}: the host's memory is not cached", device.name);
  return parse_alloc_conf(options.alloc_conf);
}

// Who knows what cuDNN plans: a file, then the library itself, then a rule. "none": plans are taken to need
// nothing.
std::unique_ptr<PlannedWorkspaces> workspaces_of(const ProfileOptions& options, const DeviceProfile& device) {
  if (device.type == DeviceType::cpu) return nullptr;
  auto workspaces = std::make_unique<PlannedWorkspaces>();
  if (options.workspaces == "none") return workspaces;
  if (options.workspaces != "auto")
    workspaces->add(WorkspaceSource::table,
                    std::make_unique<WorkspaceTable>(options.workspaces, device.name));
  workspaces->add(WorkspaceSource::planned, std::make_unique<CudnnPlanner>());
  workspaces->add(WorkspaceSource::rule, std::make_unique<WorkspaceRules>());
  return workspaces;
}

std::map<std::string, std::string> environment_of(const ProfileOptions& options) {
  std::map<std::string, std::string> environment = options.step.environment;
  for (const std::string& text : options.environment) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) fail("--env: '{}' is no NAME=VALUE", text);
    environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

}  // namespace

Rates rates_of(const DeviceProfile& profile) {
  return {.bytes_per_second = profile.bandwidth,
          .flops_f64 = profile.flops_per_second(DType::f64),
          .flops_f32 = profile.flops_per_second(DType::f32),
          .flops_f16 = profile.flops_per_second(DType::f16)};
}

Bytes unlimited_memory() { return {DeviceMemory::kMostMemory}; }

void check_options(const ProfileOptions& options) {
  (void)environment_of(options);
  if (options.workspaces != "none" && options.workspaces != "auto")
    (void)WorkspaceTable(options.workspaces, options.device);
}

DeviceProfile device_of(const ProfileOptions& options) {
  DeviceProfile device = load_device(options.device);
  if (!options.memory.empty()) device.memory = parse_size(options.memory);
  return device;
}

Program program_of(const ProfileOptions& options) {
  Program program = load_program(options.model);
  set_inputs(program, options.batch, options.sequence, options.settings);
  return program;
}

Trace run_program(const Program& program, const ProfileOptions& options, const DeviceProfile& device,
                  ProfileReport& report) {
  report.model = program.name;
  report.module_types = program.module_types;
  report.options = option_values(options);
  StepOptions step = options.step;
  step.environment = environment_of(options);
  const auto workspaces = workspaces_of(options, device);
  step.workspaces = workspaces.get();
  Trace trace = run_steps(program, device, step);
  if (!workspaces) return trace;
  const auto& table = workspaces->answers(WorkspaceSource::table);
  const auto& planned = workspaces->answers(WorkspaceSource::planned);
  const auto& rule = workspaces->answers(WorkspaceSource::rule);
  report.workspaces.table = table.bytes;
  report.workspaces.planned = planned.bytes;
  report.workspaces.unplanned_calls = workspaces->unanswered();
  if (rule.count > 0)
    message(
        fmt::format("note: workspaces of {} of {} calls of cuDNN are by rule: no table and no "
                    "installed cuDNN says what it plans",
                    rule.count, table.count + planned.count + rule.count));
  return trace;
}

Trace trace_of(const CLI::App& command, const ProfileOptions& options, const DeviceProfile& device,
               ProfileReport& report) {
  if (!is_trace_file(options.model)) return run_program(program_of(options), options, device, report);
  refuse_step_options(command, "has no effect on a trace: its steps are those that were run");
  if (options.workspaces != "none") fail("--workspaces has no effect on a trace: it has its workspaces");
  report.model = std::filesystem::path(options.model).stem().string();
  return parse_trace(read_text_file(options.model), options.model);
}

Phases replay_trace(const Trace& trace, const ProfileOptions& options, const DeviceProfile& device,
                    Bytes memory) {
  return replay(trace, device.type, *make_allocator(device, conf_of(options, device), memory));
}

void profile_trace(const Trace& trace, const ProfileOptions& options, const DeviceProfile& device,
                   ProfileReport& report) {
  report.device = device.name;
  report.device_title = device.title;
  report.device_memory = device.memory;
  report.memory =
      profile_memory(trace, device.type, *make_allocator(device, conf_of(options, device), device.memory));
  if (report.memory.phases.out_of_memory) {
    const Phases phases = replay_trace(trace, options, device, unlimited_memory());
    if (!phases.out_of_memory) report.needed_memory = Bytes{phases.peak.reserved_bytes.peak};
  }
  report.counts = count(trace, rates_of(device));
  report.workspaces.rule = report.memory.workspaces - report.workspaces.table - report.workspaces.planned;
}

}  // namespace metaprof
