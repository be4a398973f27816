// metaprof replay: executes a step on a real device, without the framework, and compares.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "cli/line/run_options.h"
#include "core/error.h"

#ifdef METAPROF_CUDA
#include "backends/cuda/step_replay.h"
#include "estimate/estimate.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/rates.h"
#include "estimate/prepare/sizes.h"
#include "estimate/replay.h"
#include "profiler/allocator/phases.h"
#include "profiler/allocator/requests.h"
#include "reports/device/replay_report.h"
#endif

namespace metaprof {
namespace {

constexpr const char* kReplayDescription =
    "Training steps on this machine's GPU, without PyTorch, beside the estimate.\n"
    "\n"
    "  metaprof replay model.pt2 --device 0\n"
    "  metaprof replay step.mp --json replay.json\n"
    "  metaprof replay model.pt2 --memory 24GiB       the rest of the device's memory is taken away\n"
    "  metaprof replay model.pt2 --alloc-conf expandable_segments:True\n"
    "\n"
    "The steps' requests of memory go through the caching allocator, whose segments are memory of the GPU; "
    "each\n"
    "call is a kernel of the same cost there. MODEL: as in metaprof profile.\n"
    "\n"
    "Exit status: 0 memory is as estimated, but for what the driver decides, 1 it differs, 2 bad usage or "
    "input, or no GPU.\n";

struct ReplayOptions {
  std::string model, json;
  RunOptions run;
  int64_t width = 0;
};

#ifdef METAPROF_CUDA

int ordinal_of(const std::string& device) {
  if (device.empty() || device.size() > 3 || device.find_first_not_of("0123456789") != std::string::npos)
    fail("--device {}: expected the number of a GPU of this machine, as 0", device);
  return std::stoi(device);
}

void refuse_described_memory(const Command& command) {
  for (const char* option : {"--context", "--margin"})
    if (command.was_given(option))
      fail("{} has no effect on a replay: the device says what is in use on it", option);
}

// Of the device's memory all but --memory; null where that is all. Errors: the device has less, or it is in use.
std::unique_ptr<cuda::DeviceBuffer> take_the_rest(const cuda::CudaDevice& device, const std::string& memory) {
  if (memory.empty()) return nullptr;
  const cuda::DeviceMemoryInfo info = device.memory();
  const int64_t wanted = parse_size(memory).count, rest = info.total - wanted;
  if (rest < 0) fail("--memory {}: the device has {} bytes", memory, info.total);
  if (rest > info.available)
    fail("--memory {}: of the device's memory {} bytes are in use", memory, info.used());
  return rest > 0 ? std::make_unique<cuda::DeviceBuffer>(static_cast<uint64_t>(rest)) : nullptr;
}

Phases phases_of(const Requests& requests, const CachingAllocatorOptions& options) {
  CachingAllocator allocator(options);
  return replay(requests, allocator);
}

int replay_on_device(const Command& command, const ReplayOptions& given) {
  refuse_described_memory(command);
  const int ordinal = ordinal_of(given.run.device);
  RunOptions options = given.run;
  options.device = RunOptions().device;  // until the real one is known
  options.memory = {};
  const Model model = read_model(given.model, options);
  print_warnings(warnings_of(model, options));

  const cuda::CudaDevice device(ordinal);
  cuda::StepReplay step(device);
  const std::unique_ptr<cuda::DeviceBuffer> taken = take_the_rest(device, given.run.memory);
  const Estimate estimate = estimate_on(model, options, device.hardware(), {device.memory().available});
  const Rates rates = rates_of(estimate.platform, estimate.options.step.environment);
  const Platform& platform = estimate.platform;
  const Requests requests = requests_of(estimate.trace, estimate.trace.events, platform.device());
  const Bytes available = {device.memory().available};

  CachingAllocatorOptions allocator = allocator_options(estimate.options, platform, available);
  ReplayComparison comparison{.model = estimate.report.model,
                              .allocator = allocator_settings(estimate.options, platform.framework),
                              .estimated = phases_of(requests, allocator),
                              .real = step.run(estimate.trace, requests, rates, allocator),
                              .differences = {},
                              .differences_at_addresses = {}};
  comparison.differences = differences(comparison.estimated, comparison.real.phases);
  // What the driver decides: where segments lie, and what it takes for libraries' kernels meanwhile.
  allocator.device.given = comparison.real.addresses;
  allocator.device.used_by_others += static_cast<uint64_t>(
      std::max<int64_t>(0, (comparison.real.used_after - comparison.real.used_before).count));
  comparison.differences_at_addresses = differences(phases_of(requests, allocator), comparison.real.phases);
  if (!given.json.empty()) write_result(given.json, replay_json(comparison));
  if (given.json != "-") print_text(replay_text(comparison, static_cast<size_t>(given.width)));
  const bool equal = comparison.differences.empty() || comparison.differences_at_addresses.empty();
  return equal ? kFine : kFinding;
}

#else

int replay_on_device(const Command&, const ReplayOptions&) {
  fail("this metaprof was built without CUDA: run tools/setup cuda, configure and build it again");
}

#endif

}  // namespace

void add_replay_command(CommandLine& line) {
  Command command = line.add("replay", kReplayDescription);
  auto options = std::make_shared<ReplayOptions>();
  add_model(command, options->model,
            "a .pt2, a .pt of torch.jit.save, the name of a .pt2 (METAPROF_MODELS lists folders), a program "
            "or a trace");
  options->run.device = "0";
  add_run_options(command, options->run);
  add_json(command, options->json);
  add_width(command, options->width);
  command.on_run([command, options] { return replay_on_device(command, *options); });
}

}  // namespace metaprof
