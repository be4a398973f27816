#include "estimate/shared_steps.h"

#include <algorithm>

#include "estimate/framework.h"

namespace metaprof {
namespace {

// A library that plans by itself is asked about the device as a whole.
bool asked_libraries(const WorkspaceSources& workspaces) {
  return workspaces.table_calls + workspaces.planned_calls + workspaces.rule_calls +
             workspaces.unplanned_calls >
         0;
}

}  // namespace

std::optional<SharedSteps> SharedSteps::run(const Program& program, const RunOptions& run,
                                            const Platform& platform,
                                            std::span<const OptimizerChoice> optimizers,
                                            WorkspacePlanners& planners) {
  SharedSteps shared;
  shared.platform_ = platform;
  shared.environment_ = run.step.environment;
  RunOptions asking = run;
  asking.step.questions = &shared.questions_;
  const std::optional<StepsInTurn> steps =
      run_in_turn(program, asking, platform, optimizers, planners, shared.workspaces_);
  if (!steps) return std::nullopt;
  for (size_t i = 0; i < optimizers.size(); ++i) {
    Requests requests = requests_of(steps->trace, steps->events[i], platform.device());
    repeat_last_step(requests, run.step.steps - steps->steps);
    shared.optimizers_.push_back(
        {.choice = optimizers[i], .requests = std::move(requests), .without_limit = {}});
  }
  shared.parameters_ = parameters_of(steps->trace).all.bytes;
  shared.saved_ = saved_by_first_forward(steps->trace, platform.device()).bytes;
  shared.flops_ = count(steps->trace, rates_of(platform)).total.counted;
  return shared;
}

bool SharedSteps::hold_on(const Platform& platform) const {
  if (platform.libraries != platform_.libraries) return false;
  Hardware same_memory = platform.hardware;
  same_memory.memory = platform_.hardware.memory;
  if (same_memory == platform_.hardware) return true;
  return !asked_libraries(workspaces_) && platform.device() == platform_.device() &&
         questions_.has_same_answers(with_environment(platform, environment_));
}

SharedSteps::Memory SharedSteps::memory(const RunOptions& run, const Platform& platform) {
  const OptimizerChoice choice{run.step.optimizer, run.step.optimizer_impl};
  OfOptimizer& one = *std::ranges::find(optimizers_, choice, &OfOptimizer::choice);
  return memory(one.requests, one.without_limit, run, platform);
}

SharedSteps::Memory SharedSteps::memory(const Requests& requests, const RunOptions& run,
                                        const Platform& platform) {
  std::optional<Phases> without_limit;
  return memory(requests, without_limit, run, platform);
}

SharedSteps::Memory SharedSteps::memory(const Requests& requests, std::optional<Phases>& without_limit,
                                        const RunOptions& run, const Platform& platform) {
  const Bytes available = available_memory(run, platform);
  const bool usual_settings = allocator_settings(run, platform.framework).empty();
  // Some settings look at the size of the memory. Without them a limit that is never reached is none.
  std::optional<Phases> own;
  std::optional<Phases>& known = usual_settings ? without_limit : own;
  if (!known) known = replay_requests(requests, run, platform, unlimited_memory());
  const Phases& unlimited = *known;
  if (usual_settings && !unlimited.out_of_memory && unlimited.peak.reserved_bytes.peak <= available.count)
    return {.peak = unlimited.peak,
            .without_limit = unlimited.peak,
            .verdict = verdict_of(run, platform, unlimited, std::nullopt)};
  const Phases limited = replay_requests(requests, run, platform, available);
  std::optional<Bytes> needed;
  if (!unlimited.out_of_memory) needed = Bytes{unlimited.peak.reserved_bytes.peak};
  return {.peak = limited.peak,
          .without_limit = unlimited.peak,
          .runs_out = limited.out_of_memory.has_value(),
          .verdict = verdict_of(run, platform, limited, needed)};
}

}  // namespace metaprof
