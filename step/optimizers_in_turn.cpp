#include "step/optimizers_in_turn.h"

#include <algorithm>
#include <span>
#include <utility>

#include "step/training_step.h"

namespace metaprof {
namespace {

// What stood at the beginning of a step and went in it has been replaced by its like: the next step finds what this
// one found, and does the same again. (The loss is the tensor that a step replaces.)
bool leaves_all_as_it_was(const Trace& trace, std::span<const Event> step) {
  std::vector<uint32_t> born, replaced;
  const uint32_t first = [&] {  // the smallest number that the step has given
    for (const Event& event : step)
      if (event.kind == Event::Kind::alloc) return event.id;
    return ~0u;
  }();
  std::vector<bool> freed(trace.storages.size());
  for (const Event& event : step) {
    if (event.kind == Event::Kind::alloc) born.push_back(event.id);
    if (event.kind != Event::Kind::free) continue;
    freed[event.id] = true;
    if (event.id < first) replaced.push_back(event.id);
  }
  std::erase_if(born, [&](uint32_t storage) { return freed[storage]; });
  std::ranges::sort(replaced);
  return std::ranges::equal(born, replaced, [&](uint32_t one, uint32_t other) {
    const StorageRecord &a = trace.storages[one], &b = trace.storages[other];
    return a.bytes == b.bytes && a.device == b.device && a.category == b.category &&
           a.size_of_platform == 0 && b.size_of_platform == 0;  // another platform's may not be alike
  });
}

class TakingTurns {
 public:
  TakingTurns(const Program& program, const Platform& platform, const StepOptions& options,
              std::span<const OptimizerChoice> choices)
      : options_(without_optimizer(options)), training_(program, platform, options_) {
    training_.repeat_passes();
    result_.events.resize(choices.size());
    to_all();
    for (const OptimizerChoice& choice : choices) {
      optimizers_.push_back(training_.make_optimizer(choice.name, choice.implementation));
      to_one(optimizers_.size() - 1);
    }
  }

  std::optional<StepsInTurn> run() {
    while (result_.steps < options_.steps) {
      std::vector<size_t> begins;
      for (size_t i = 0; i < optimizers_.size(); ++i) begins.push_back(events_of(i).size());
      if (!step(result_.steps++)) return std::nullopt;
      if (result_.steps > 1 && is_steady(begins)) break;
    }
    result_.trace = training_.finish();
    if (!is_alone()) result_.trace.events = std::move(result_.events[0]);
    return std::move(result_);
  }

 private:
  static StepOptions without_optimizer(StepOptions options) {
    options.optimizer = "none";
    return options;
  }

  // False: an optimizer has left something for the next forward.
  bool step(int number) {
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      const int shown = options_.accumulate > 1 ? micro : -1;
      training_.forward(number, shown);
      training_.backward(number, shown);
    }
    to_all();
    const size_t workspaces = training_.session().library_workspaces.size();
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      update(i, number);
      to_one(i);
    }
    if (training_.session().library_workspaces.size() != workspaces) return false;
    optimizers_[0] = training_.exchange_optimizer(std::move(optimizers_[0]));
    training_.zero_grad(number);
    optimizers_[0] = training_.exchange_optimizer(std::move(optimizers_[0]));
    to_all();
    return true;
  }

  void update(size_t optimizer, int step) {
    optimizers_[optimizer] = training_.exchange_optimizer(std::move(optimizers_[optimizer]));
    training_.update(step);
    optimizers_[optimizer] = training_.exchange_optimizer(std::move(optimizers_[optimizer]));
  }

  bool is_steady(const std::vector<size_t>& begins) {
    for (size_t i = 0; i < optimizers_.size(); ++i)
      if (!optimizers_[i]->steps_alike() ||
          !leaves_all_as_it_was(training_.session().trace, std::span(events_of(i)).subspan(begins[i])))
        return false;
    return true;
  }

  // The events of one optimizer stay where they are written: they are most of what a long run takes.
  bool is_alone() const { return result_.events.size() == 1; }
  const PlainVector<Event>& events_of(size_t optimizer) {
    return is_alone() ? training_.session().trace.events : result_.events[optimizer];
  }

  // What has happened since the last call belongs to …
  void to_all() {
    if (is_alone()) return;
    const std::span<const Event> events = not_taken();
    for (auto& own : result_.events) own.append(events.begin(), events.end());
  }
  void to_one(size_t optimizer) {
    if (is_alone()) return;
    const std::span<const Event> events = not_taken();
    result_.events[optimizer].append(events.begin(), events.end());
  }
  std::span<const Event> not_taken() {
    const std::span<const Event> events = training_.session().trace.events;
    return events.subspan(std::exchange(taken_, events.size()));
  }

  const StepOptions options_;
  TrainingStep training_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  StepsInTurn result_;
  size_t taken_ = 0;  // events of the trace that somebody has
};

}  // namespace

bool can_take_turns(const Program& program, const StepOptions& options) {
  return !program.captured && options.mode == Mode::train && options.optimizer != "none" &&
         options.grad.empty() && options.execution == Execution::eager;
}

std::optional<StepsInTurn> run_in_turn(const Program& program, const Platform& platform,
                                       const StepOptions& options,
                                       std::span<const OptimizerChoice> optimizers) {
  return TakingTurns(program, platform, options, optimizers).run();
}

}  // namespace metaprof
