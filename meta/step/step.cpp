#include "meta/step/step.h"

#include "meta/step/training_step.h"

namespace metaprof {

Trace run_steps(const Program& program, const Platform& platform, const StepOptions& options) {
  TrainingStep training(program, platform, options);
  for (int step = 0; step < options.steps; ++step) {
    for (int micro = 0; micro < options.accumulate; ++micro) {
      const int number = options.accumulate > 1 ? micro : -1;
      training.forward(step, number);
      if (options.mode == Mode::train) training.backward(step, number);
    }
    if (!training.has_optimizer()) continue;
    training.update(step);
    training.zero_grad(step);
  }
  return training.finish();
}

}  // namespace metaprof
