#include "estimate/search/sized_steps.h"

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

std::optional<SharedSteps::Memory> SizedSteps::memory(const Program& program, const RunOptions& run,
                                                      const Platform& platform,
                                                      WorkspaceSources& workspaces) {
  const OptimizerChoice own{run.step.optimizer, run.step.optimizer_impl};
  Entry& entry = entry_of(run);
  const std::lock_guard lock(entry.busy);
  SharedSteps* steps = nullptr;
  for (SharedSteps& known : entry.known)
    if (known.hold_on(platform)) steps = &known;
  if (!steps) {
    std::optional<SharedSteps> made = SharedSteps::run(program, run, platform, {&own, 1}, planners_);
    if (!made) return std::nullopt;
    steps = &entry.known.emplace_back(std::move(*made));
  }
  workspaces = steps->workspaces();
  return steps->memory(run, platform);
}

}  // namespace metaprof
