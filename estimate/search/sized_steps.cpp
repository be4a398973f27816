#include "estimate/search/sized_steps.h"

#include "estimate/model_run.h"
#include "estimate/prepare/prepare.h"
#include "estimate/prepare/run_groups.h"

namespace metaprof {

SizedSteps::Entry& SizedSteps::entry_of(const RunOptions& run) {
  const std::string key =
      options_of_dispatch(run) + run.step.optimizer + std::string(to_string(run.step.optimizer_impl));
  const std::lock_guard lock(looking_);
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_unique<Entry>();
  return *entry;
}

SizedSteps::Found SizedSteps::alone(const Program& program, const RunOptions& run, const Platform& platform) {
  Found found{.memory = {}, .inputs = inputs_of(program), .workspaces = {}};
  const Requests requests = requests_of_run(program, run, platform, planners_, found.workspaces);
  found.memory = SharedSteps::memory(requests, run, platform);
  return found;
}

SizedSteps::Found SizedSteps::find(const RunOptions& run, const Platform& platform) {
  if (platform.hardware.is_cpu()) return alone(with_inputs(model_, run), run, platform);
  Entry& entry = entry_of(run);
  const std::lock_guard lock(entry.busy);
  for (SharedSteps& known : entry.known)
    if (known.hold_on(platform)) return {known.memory(run, platform), entry.inputs, known.workspaces()};
  const Program program = with_inputs(model_, run);
  const OptimizerChoice own{run.step.optimizer, run.step.optimizer_impl};
  std::optional<SharedSteps> made = SharedSteps::run(program, run, platform, {&own, 1}, planners_);
  if (!made) return alone(program, run, platform);
  entry.inputs = inputs_of(program);
  SharedSteps& steps = entry.known.emplace_back(std::move(*made));
  return {steps.memory(run, platform), entry.inputs, steps.workspaces()};
}

}  // namespace metaprof
