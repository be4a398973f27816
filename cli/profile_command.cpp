// metaprof profile: runs the steps of a model on a described device and reports what they cost.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/metaprof.h"
#include "cli/profile_options.h"
#include "cli/sizes.h"
#include "frontend/workspace_table.h"
#include "meta/core/error.h"
#include "meta/trace/text.h"
#include "profiler/allocator/caching_allocator.h"
#include "profiler/allocator/exact_allocator.h"

namespace metaprof {
namespace {

constexpr const char* kDescription =
    "What training steps of a model cost.\n"
    "\n"
    "  metaprof profile model.pt2\n"
    "  metaprof profile model.pt2 --device a100 --precision amp-bf16 --optimizer adamw --steps 3\n"
    "  metaprof profile model.pt2 --memory 24GiB --depth 2 --sort saved\n"
    "  metaprof profile model.pt2 --json - | jq .peak\n"
    "  metaprof profile model.pt2 --write-trace step.trace; metaprof profile step.trace\n"
    "\n"
    "MODEL is a .pt2 that torch.export.save wrote, or the text of a trace (*.trace).\n"
    "Exit status: 0 it fits, 1 it does not fit, 2 bad usage or input.\n";

Rates rates_of(const DeviceProfile& profile) {
  return {.bytes_per_second = profile.bandwidth,
          .flops_f64 = profile.flops_per_second(DType::f64),
          .flops_f32 = profile.flops_per_second(DType::f32),
          .flops_f16 = profile.flops_per_second(DType::f16)};
}

Trace run_model(const CLI::App& command, const ProfileOptions& options, const DeviceProfile& device,
                ProfileReport& report) {
  if (is_trace_file(options.model)) {
    refuse_step_options(command, "has no effect on a trace: its steps are those that were run");
    if (options.step.workspaces) fail("--workspaces has no effect on a trace: it has its workspaces");
    report.model = std::filesystem::path(options.model).stem().string();
    return parse_trace(read_text_file(options.model), options.model);
  }
  const Program program = load_program(options.model);
  report.model = program.name;
  report.module_types = program.module_types;
  report.options = option_values(options);
  return run_steps(program, device, options.step);
}

// The framework caches memory of CUDA devices; that of the host is taken and given back as it is needed.
std::unique_ptr<DeviceAllocator> make_allocator(const DeviceProfile& device, const AllocConf& conf,
                                                Bytes memory) {
  if (device.type == DeviceType::cpu) return std::make_unique<ExactAllocator>();
  return std::make_unique<CachingAllocator>(
      CachingAllocatorOptions{.conf = conf, .device = {.capacity = static_cast<uint64_t>(memory.count)}});
}

void profile_memory_of(const Trace& trace, const DeviceProfile& device, const ProfileOptions& options,
                       ProfileReport& report) {
  if (device.type == DeviceType::cpu && !options.alloc_conf.empty())
    fail("--alloc-conf has no effect on {}: the host's memory is not cached", device.name);
  const AllocConf conf = parse_alloc_conf(options.alloc_conf);
  report.memory = profile_memory(trace, device.type, *make_allocator(device, conf, device.memory));
  if (!report.memory.phases.out_of_memory) return;
  const auto without_limit = make_allocator(device, conf, {DeviceMemory::kMostMemory});
  const Phases phases = replay(trace, device.type, *without_limit);
  if (!phases.out_of_memory) report.needed_memory = Bytes{phases.peak.reserved_bytes.peak};
}

// What cuDNN plans, from a file; without one it takes nothing: no rule knows its plans.
std::unique_ptr<WorkspaceTable> read_workspaces(ProfileOptions& options, const DeviceProfile& device) {
  if (options.workspaces == "auto" || options.workspaces == "none") return nullptr;
  auto table = std::make_unique<WorkspaceTable>(options.workspaces, device.name);
  options.step.workspaces = table.get();
  return table;
}

void read_environment(ProfileOptions& options) {
  for (const std::string& text : options.environment) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) fail("--env: '{}' is no NAME=VALUE", text);
    options.step.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

int profile(const CLI::App& command, ProfileOptions options) {
  refuse_what_does_not_work_yet(options);
  read_environment(options);
  DeviceProfile device = load_device(options.device);
  if (!options.memory.empty()) device.memory = parse_size(options.memory);

  const auto workspaces = read_workspaces(options, device);

  ProfileReport report;
  report.device = device.name;
  report.device_title = device.title;
  report.device_memory = device.memory;
  const Trace trace = run_model(command, options, device, report);
  if (!options.write_trace.empty()) write_result(options.write_trace, to_text(trace));

  profile_memory_of(trace, device, options, report);
  report.counts = count(trace, rates_of(device));
  report.workspaces.table = workspaces ? workspaces->blocks() : 0;
  report.workspaces.rule = report.memory.workspaces - report.workspaces.table;
  if (workspaces && workspaces->missed() > 0)
    message(fmt::format("note: {} of {} calls of convolutions are not in {}: they take no workspace",
                        workspaces->missed(), workspaces->missed() + workspaces->found(),
                        options.workspaces));

  if (!options.json.empty()) write_result(options.json, profile_json(report));
  options.text.colour = colour_on_stdout();
  if (options.json != "-") std::cout << profile_text(report, options.text);
  return fits(report.memory.phases, device.memory) ? kFine : kFinding;
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("profile", kDescription);
  auto options = std::make_shared<ProfileOptions>();
  add_profile_options(*command, *options);
  command->callback([command, options, &exit_code] { exit_code = profile(*command, *options); });
}

}  // namespace metaprof
