#include "estimate/compare/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/formats/display.h"
#include "estimate/prepare/framework.h"
#include "meta/platform/hardware.h"
#include "validation/steps/check.h"

namespace metaprof {
namespace {

// What cards of one name report of their memory differs by what their drivers keep back, some hundred MiB of tens of GiB.
constexpr double kKeptByDriver = 0.03;

bool is_asked(const RunOptions& options, std::string_view name) {
  const RunOption& option = run_option(name);
  return options.step.given.contains(option.name) || option.value(options) != option.value(RunOptions());
}

std::string file_of(const Measurement& measurement) { return measurement.head.path.string(); }

// "130" of "2.11.0+cu130"; empty: it does not say.
std::string cuda_of(const std::string& torch) {
  const size_t at = torch.find("+cu");
  return at == torch.npos ? "" : torch.substr(at + 3);
}

// "13.0" as 130.
std::string without_point(std::string version) {
  std::erase(version, '.');
  return version;
}

std::string cuda_of(const Measurement& measurement) {
  return measurement.cuda.empty() ? cuda_of(measurement.torch) : without_point(measurement.cuda);
}

std::string with_point(const std::string& cuda) {
  return cuda.size() < 3 ? cuda : cuda.substr(0, cuda.size() - 1) + "." + cuda.back();
}

// Who says what the estimate is for: an option, or the program's own run.
std::string source_of(const RunOptions& asked, std::string_view option, const Program& program) {
  if (is_asked(asked, option)) return run_option(option).flag();
  return program.captured ? program.origin : "the estimate";
}

void expect_device(const Measurement& measurement, const std::string& says, const Hardware& hardware) {
  if (measurement.device_title.empty() || measurement.device_title == hardware.title) return;
  fail("{}: was measured on {}, and {} is for {}", file_of(measurement), measurement.device_title, says,
       hardware.title);
}

void expect_memory(const Measurement& measurement, const std::string& says, Bytes memory) {
  const auto measured = static_cast<double>(measurement.head.device_memory.count),
             expected = static_cast<double>(memory.count);
  if (std::abs(measured - expected) <= kKeptByDriver * std::max(measured, expected)) return;
  fail("{}: its device has {} of memory, and {} is for {}; --memory names another size", file_of(measurement),
       human_bytes(measurement.head.device_memory.count), says, human_bytes(memory.count));
}

void expect_framework(const Measurement& measurement, const std::string& says, FrameworkVersion version) {
  const auto& measured = measurement.head.framework;
  if (!measured || (measured->major == version.major && measured->minor == version.minor)) return;
  if (std::pair(measured->major, measured->minor) > std::pair(kNewestFramework.major, kNewestFramework.minor))
    return;  // whose rules are taken for an unknown one is no contradiction
  fail("{}: was measured with PyTorch {}, and {} is for {}", file_of(measurement), to_string(*measured), says,
       to_string(version));
}

void expect_cuda(const Measurement& measurement, const Program& program, const Libraries& libraries) {
  const std::string measured = cuda_of(measurement);
  if (measured.empty()) return;
  if (const std::string inner = cuda_of(measurement.torch); !inner.empty() && inner != measured)
    fail("{}: is of PyTorch {} and of CUDA {}", file_of(measurement), measurement.torch,
         with_point(measured));
  const std::string captured = program.captured ? cuda_of(program.captured->torch) : "";
  if (!captured.empty() && captured != measured)
    fail("{}: was measured with CUDA {}, and {} ran with {}", file_of(measurement), with_point(measured),
         program.origin, with_point(captured));
  if (!libraries.of_the_machine) return;  // a device file says which versions its machine has
  const std::string machine = fmt::format("{}", libraries.cuda / 100 + libraries.cuda % 100 / 10);
  if (machine != measured)
    fail("{}: was measured with CUDA {}, and the file of the device says {}", file_of(measurement),
         with_point(measured), with_point(machine));
  if (measurement.cudnn && *measurement.cudnn != libraries.cudnn)
    fail("{}: was measured with cuDNN {}, and the file of the device says {}", file_of(measurement),
         *measurement.cudnn, libraries.cudnn);
}

void expect_settings(const Measurement& measurement, const std::string& says, const std::string& settings) {
  if (settings == measurement.head.alloc_conf) return;
  fail("{}: its allocator was set to '{}', and {} says '{}'", file_of(measurement),
       measurement.head.alloc_conf, says, settings);
}

void expect_steps(const Measurement& measurement, const RunOptions& asked) {
  if (!is_asked(asked, "steps") || asked.step.steps == measurement.steps()) return;
  fail("{}: has {} steps, and --steps says {}", file_of(measurement), measurement.steps(), asked.step.steps);
}

// A recording says the batch beside the inputs.
void expect_batch(const Measurement& recording) {
  if (!recording.batch) return;
  const bool any = std::ranges::any_of(recording.inputs, [&](const MeasuredInput& input) {
    return !input.sizes.empty() && input.sizes[0] == *recording.batch;
  });
  if (!any && !recording.inputs.empty())
    fail("{}: config.batch is {}, and no input begins with that size", file_of(recording), *recording.batch);
}

const Hardware* known_by_title(const std::string& title) {
  const auto& all = known_hardware();
  const auto found = std::ranges::find_if(all, [&](const Hardware& known) { return known.title == title; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

RunOptions with_facts_of_run(RunOptions asked, const Measurement& run) {
  if (!is_asked(asked, "device")) {
    const Hardware* known = known_by_title(run.device_title);
    if (!known)
      fail("{}: was measured on {}, which is not known: describe it in a file (--device FILE.json)",
           file_of(run), run.device_title);
    asked.device = known->name;
    // An emulated card has the memory that it was given.
    if (run.on == MeasuredOn::emulated && !is_asked(asked, "memory"))
      asked.memory = fmt::format("{}B", run.head.device_memory.count);
  }
  if (!is_asked(asked, "framework") && run.head.framework) asked.framework = to_string(*run.head.framework);
  if (!is_asked(asked, "alloc_conf")) asked.alloc_conf = run.head.alloc_conf;
  if (!is_asked(asked, "steps"))
    asked.step.steps = static_cast<int>(std::clamp<int64_t>(run.steps(), 1, 1000));
  return asked;
}

void expect_agreement(const Measurement& measurement, const RunOptions& asked, const PreparedRun& prepared) {
  const Program& program = prepared.program();
  const Platform& platform = prepared.platform;
  expect_device(measurement, source_of(asked, "device", program), platform.hardware);
  expect_memory(measurement, source_of(asked, is_asked(asked, "memory") ? "memory" : "device", program),
                platform.hardware.memory);
  expect_framework(measurement, source_of(asked, "framework", program), platform.framework.version);
  expect_cuda(measurement, program, platform.libraries);
  expect_settings(measurement, source_of(asked, "alloc_conf", program),
                  allocator_settings(prepared.options, platform.framework));
  expect_steps(measurement, asked);
  if (!program.captured) expect_same_model(measurement, program);
}

void expect_agreement(const Measurement& recording, const RunOptions& asked, const Platform& platform) {
  const std::string device = fmt::format("config.device ({})", recording.options.device);
  expect_device(recording, device, platform.hardware);
  if (recording.on == MeasuredOn::real) expect_memory(recording, device, platform.hardware.memory);
  if (is_asked(asked, "framework") && recording.head.framework)
    expect_framework(recording, "--framework", framework_given(asked));
  expect_batch(recording);
}

void expect_agreement(std::span<const Measurement> runs) {
  for (size_t i = 1; i < runs.size(); ++i) {
    const Measurement &first = runs[0], &other = runs[i];
    Hardware hardware;
    hardware.title = first.device_title;
    if (!first.device_title.empty()) expect_device(other, file_of(first), hardware);
    expect_memory(other, file_of(first), first.head.device_memory);
    if (first.head.framework) expect_framework(other, file_of(first), *first.head.framework);
    if (const std::string cuda = cuda_of(first), its = cuda_of(other);
        !cuda.empty() && !its.empty() && cuda != its)
      fail("{}: was measured with CUDA {}, and {} with {}", file_of(other), with_point(its), file_of(first),
           with_point(cuda));
    expect_settings(other, file_of(first), first.head.alloc_conf);
  }
}

}  // namespace metaprof
