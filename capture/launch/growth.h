#pragma once
// Memory that grows while a program runs: from step to step, or from call to call of a module within one phase.

#include <optional>
#include <string>

#include "capture/launch/recording.h"

namespace metaprof {

/// Each step leaves memory that no later step frees.
struct StepGrowth {
  Bytes per_step;     ///< the least of the steps that were compared
  int64_t steps = 0;  ///< so many steps were seen to grow, one after the other
  std::string
      line;  ///< of the program, which made most of it in the steps whose every request is kept; may be empty
  std::string held_by;  ///< the variable that leads to it, "losses (train.py:31), a list of 20"; may be empty
  std::string op;       ///< that made it, and in which phase, "aten::mul in backward"; may be empty
  int64_t ends_at = 0;  ///< the step, from 1, at which the device is full
};

/// A module is called again and again without a backward, and each call leaves memory: its graph is kept.
struct CallGrowth {
  Bytes per_call;
  int64_t calls = 0;
  std::string phase;  ///< and step, from 0, in which they are
  int64_t step = 0;
  std::string module;  ///< its type, "ResNet"
  std::string line;    ///< of the program, that calls the module; may be empty
};

/// Memory after the steps does not grow.
struct SteadySteps {
  int64_t first = 0, last = 0;  ///< steps that were compared, from 0
  Bytes least, most;            ///< allocated when they end
};

/// Nothing: memory after a step is the same, or goes up and down, or grows so little that the device is full after a million
/// steps and more. The first two steps are left out: they make what stays (gradients, the optimizer's state). In a program
/// without an optimizer a step is a backward. `outside`: of the device's memory, what lies outside the allocator.
std::optional<StepGrowth> growth_by_step(const RecordedDevice& device, Bytes outside);

/// Nothing: fewer than three steps follow the first two, or more is allocated after the later half of them than was after the first.
std::optional<SteadySteps> steady_steps(const RecordedDevice& device);

/// The largest of all phases; nothing: no phase has one. What is freed later counts only where the run's peak is.
std::optional<CallGrowth> growth_by_call(const RecordedDevice& device);

}  // namespace metaprof
