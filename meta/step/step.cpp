#include "meta/step/step.h"

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/run/interpreter.h"
#include "meta/step/training_step.h"

namespace metaprof {
namespace {

// What a captured program does in its steps is its own affair.
void expect_own_steps(const Program& program, const StepOptions& options) {
  const RunOptions usual;
  RunOptions asked;
  asked.step = options;
  for (const RunOption& option : run_options())
    if (option.group == RunOption::Group::step && option.name != "strict" && option.name != "env" &&
        option.value(asked) != option.value(usual))
      fail("{}: {} was captured from a run, whose steps are its own", option.flag(), program.origin);
}

Trace run_captured(const Program& program, const Platform& platform, const StepOptions& options) {
  expect_own_steps(program, options);
  const std::unique_ptr<Session> session = make_session(with_environment(platform, options.environment));
  session->planned_workspaces = options.workspaces;
  Interpreter interpreter(*session, program, {.strict = options.strict});
  const std::vector<Value> held = interpreter.run({});
  return std::move(session->trace);
}

}  // namespace

Trace run_steps(const Program& program, const Platform& platform, const StepOptions& options) {
  if (program.captured) return run_captured(program, platform, options);
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
