#include "estimate/search/shared_steps.h"

#include <algorithm>

#include "estimate/model_run.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/memory_limit.h"
#include "estimate/replay.h"

namespace metaprof {
namespace {

// A library that plans by itself is asked about the device as a whole.
bool asked_libraries(const WorkspaceSources& workspaces) {
  return workspaces.table_calls + workspaces.planned_calls + workspaces.rule_calls +
             workspaces.unplanned_calls >
         0;
}

bool only_calls_the_model(const Program& program, const StepOptions& step) {
  return !program.captured && step.mode != Mode::train && step.grad.empty() &&
         step.execution == Execution::eager;
}

Requests with_sizes(Requests requests, std::span<const int64_t> sizes) {
  for (Request& request : requests.list)
    if (request.kind == Request::Kind::allocate && request.size_of_platform > 0)
      request.bytes = sizes[request.size_of_platform - 1];
  return requests;
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
  if (only_calls_the_model(program, run.step)) {
    shared.read(run_model(program, asking, platform, planners, shared.workspaces_));
    return shared;
  }
  const std::optional<StepsInTurn> steps =
      run_in_turn(program, asking, platform, optimizers, planners, shared.workspaces_);
  if (!steps) return std::nullopt;
  for (size_t i = 0; i < optimizers.size(); ++i) {
    const PlainVector<Event>& events = i == 0 ? steps->trace.events : steps->events[i];
    Requests requests = requests_of(steps->trace, events, platform.device());
    repeat_last_step(requests, run.step.steps - steps->steps);
    shared.add(optimizers[i], std::move(requests));
  }
  shared.count(steps->trace);
  return shared;
}

void SharedSteps::read(const Trace& trace) {
  asked_.push_back({.requests = requests_of(trace, trace.events, platform_.device()), .without_limit = {}});
  count(trace);
}

void SharedSteps::count(const Trace& trace) {
  parameters_ = bytes_of_parameters(trace);
  saved_ = saved_by_first_forward(trace, platform_.device()).bytes;
  flops_ = counted_flops(trace);
}

void SharedSteps::add(const OptimizerChoice& optimizer, Requests requests) {
  const auto same = std::ranges::find_if(
      asked_, [&](const Asked& known) { return ask_for_the_same(known.requests, requests); });
  optimizers_.emplace_back(optimizer, same - asked_.begin());
  if (same == asked_.end()) asked_.push_back({.requests = std::move(requests), .without_limit = {}});
}

SharedSteps::Sizes SharedSteps::sizes_on(const Platform& platform) const {
  const Platform whole = with_environment(platform, environment_);
  Sizes sizes;
  for (const auto& size : questions_.sizes()) sizes.push_back(size(whole));
  return sizes;
}

bool SharedSteps::hold_on(const Platform& platform) const {
  if (platform.libraries != platform_.libraries) return false;
  Hardware same_memory = platform.hardware;
  same_memory.memory = platform_.hardware.memory;
  if (same_memory == platform_.hardware) return true;
  const auto is_nothing = [](int64_t bytes) { return bytes == 0; };  // which is not asked for
  return !asked_libraries(workspaces_) && platform.device() == platform_.device() &&
         questions_.has_same_answers(with_environment(platform, environment_)) &&
         std::ranges::none_of(sizes_on(platform), is_nothing) &&
         std::ranges::none_of(sizes_on(platform_), is_nothing);
}

// Where the model is only called, no optimizer asks for anything.
SharedSteps::Asked& SharedSteps::asked_by(const OptimizerChoice& optimizer) {
  if (optimizers_.empty()) return asked_[0];
  return asked_[std::ranges::find(optimizers_, optimizer, &std::pair<OptimizerChoice, size_t>::first)
                    ->second];
}

SharedSteps::Memory SharedSteps::memory(const RunOptions& run, const Platform& platform) {
  Asked& asked = asked_by({run.step.optimizer, run.step.optimizer_impl});
  const Sizes sizes = sizes_on(platform);
  std::optional<Phases>& without_limit = asked.without_limit[sizes];
  if (sizes == sizes_on(platform_)) return memory(asked.requests, without_limit, run, platform);
  return memory(with_sizes(asked.requests, sizes), without_limit, run, platform);
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
