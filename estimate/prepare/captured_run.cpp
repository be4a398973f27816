#include "estimate/prepare/captured_run.h"

#include <fmt/format.h>

#include "core/error.h"
#include "estimate/prepare/model.h"

namespace metaprof {
namespace {

bool is_asked_for(const RunOptions& options, std::string_view name) {
  const RunOption& option = run_option(name);
  return options.step.given.contains(option.name) || option.value(options) != option.value(RunOptions());
}

Bytes memory_of(const std::string& device, const std::string& origin) {
  RunOptions options;
  options.device = device;
  try {
    return device_of(options).hardware.memory;
  } catch (const Error&) {
    fail("{}: was captured on the device '{}', which is not known; name it, or another one, with --device",
         origin, device);
  }
}

// A device that is asked for has all of its own memory.
void take_device(RunOptions& options, const Program& program) {
  const Capture& capture = *program.captured;
  if (is_asked_for(options, "device")) return;
  if (!capture.device.empty()) options.device = capture.device;
  if (is_asked_for(options, "memory") || capture.memory == 0) return;
  if (memory_of(options.device, program.origin).count != capture.memory)
    options.memory = fmt::format("{}B", capture.memory);
}

// A module has no optimizer of its own, and what its capture was asked for it has.
RunOptions of_module(RunOptions options, const Capture& capture) {
  const RunOptions usual;
  for (const auto& [name, text] : capture.module) {
    const RunOption& option = run_option(name);
    if (to_text(option.value(options)) != text)
      continue;  // another size or precision: the engine changes the steps
    if (option.repeated)
      options.settings.clear();
    else
      option.set(options, option.value(usual));
    options.step.given.erase(option.name);
  }
  if (!capture.own_optimizer) options.step.given.insert(run_option("optimizer").name);
  options.step.given.insert(run_option("device").name);
  return options;
}

void take_environment_of_run(RunOptions& options, const Capture& capture) {
  std::map<std::string, std::string> of_run = capture.environment;
  if (!capture.alloc_conf.empty())
    of_run["PYTORCH_ALLOC_CONF"] = of_run["PYTORCH_CUDA_ALLOC_CONF"] = capture.alloc_conf;
  options.step.environment.merge(of_run);  // what is there stays
}

bool is_of_module(const Program& program, std::string_view name) {
  return program.captured && program.captured->module.contains(std::string(name));
}

}  // namespace

RunOptions as_captured(RunOptions options, const Program& program) {
  if (!program.captured) return options;
  if (!program.captured->module.empty()) return of_module(std::move(options), *program.captured);
  take_device(options, program);
  take_environment_of_run(options, *program.captured);
  if (!is_asked_for(options, "workspaces")) options.workspaces = program.captured->workspaces;
  return options;
}

RunOptions shown_as(const RunOptions& asked, const Program& program) {
  const bool module = program.captured && !program.captured->module.empty();
  return module ? asked : as_captured(asked, program);
}

std::vector<std::string> options_of_run(const RunOptions& asked, const Program& program) {
  std::vector<std::string> names;
  const RunOptions taken = as_captured(asked, program);
  for (const RunOption& option : run_options())
    if (option.value(taken) != option.value(asked) && !is_of_module(program, option.name))
      names.emplace_back(option.name);
  if (program.captured && !program.captured->device.empty() && !is_asked_for(asked, "device") &&
      taken.device == asked.device)
    names.insert(names.begin(), "device");
  return names;
}

}  // namespace metaprof
