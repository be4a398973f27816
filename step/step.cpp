#include "step/step.h"

#include "core/error.h"
#include "meta/autograd/graph/state.h"
#include "meta/ops/all.h"
#include "program/edits/rewriting.h"
#include "program/edits/variants.h"
#include "step/checkpointed_modules.h"
#include "step/eager/interpreter.h"
#include "step/training_step.h"

namespace metaprof {
namespace {

// What of a captured program's steps cannot be otherwise than they were.
void expect_own_steps(const Program& program, const StepOptions& options) {
  const RunOptions usual;
  RunOptions asked;
  asked.step = options;
  for (const std::string_view name : {"clip_norm", "clip_value", "zero_grad_to_none", "channels_last", "mode",
                                      "hooks", "grad", "create_graph", "hvp", "execution", "optimizer"}) {
    const RunOption& option = run_option(name);
    const bool none = name == "optimizer" && options.optimizer == "none";
    if (name == "optimizer" ? none : option.value(asked) != option.value(usual))
      fail("{}: {} was captured from a run, whose steps are its own", option.flag(), program.origin);
  }
}

bool is_asked(const StepOptions& options, std::string_view name) {
  const RunOptions usual;
  RunOptions asked;
  asked.step = options;
  const RunOption& option = run_option(name);
  return options.given.contains(name) || option.value(asked) != option.value(usual);
}

// Of a captured program only whole modules are computed again.
std::vector<CheckpointRegion> whole_modules(const Program& program, const StepOptions& options) {
  std::vector<CheckpointRegion> regions;
  for (const RecomputeRegion& region :
       checkpointed_modules(program, options.checkpoint, options.checkpoint_reentrant)) {
    if (region.offload || !region.inside.empty())
      fail("--checkpoint {}: of the captured {} only whole modules can be computed again", options.checkpoint,
           program.origin);
    regions.push_back({.begin = region.begin,
                       .end = region.end,
                       .reentrant = region.reentrant,
                       .whole = region.whole,
                       .kept = region.kept});
  }
  return regions;
}

// The program as the options want it.
Program variant_of(Program program, const Registry& registry, const StepOptions& options) {
  const bool scales = options.precision == Precision::amp_fp16;
  expect_step_calls(program);
  if (is_asked(options, "steps")) keep_steps(program, options.steps);
  if (is_asked(options, "precision")) {
    if (scales) fail("--precision amp-fp16: {} would have to scale gradients", program.origin);
    part_conversions(program);
    change_precision(program, registry, state_dtype(options.precision));
    change_autocast(program, autocast_dtype(options.precision));
  }
  if (is_asked(options, "optimizer") || is_asked(options, "optimizer_impl"))
    replace_optimizers(program, options.optimizer, std::string(to_string(options.optimizer_impl)));
  if (!options.checkpoint.empty()) checkpoint_modules(program, whole_modules(program, options));
  if (options.accumulate != 1) accumulate(program, options.accumulate);
  return program;
}

bool is_another(const StepOptions& options) {
  for (const std::string_view name :
       {"steps", "precision", "optimizer", "optimizer_impl", "checkpoint", "accumulate"})
    if (is_asked(options, name)) return true;
  return false;
}

Trace run_captured(const Program& captured, const Platform& platform, const StepOptions& options) {
  expect_own_steps(captured, options);
  if (options.strict && !captured.warnings.empty())
    fail("{}: {}: leave out --strict to go on", captured.origin, captured.warnings[0]);
  const std::unique_ptr<Session> session = make_session(with_environment(platform, options.environment));
  session->planned_workspaces = options.workspaces;
  autograd_state(*session).anomaly = options.anomaly;
  std::optional<Program> variant;
  if (is_another(options)) variant = variant_of(captured, session->registry, options);
  const Program& program = variant ? *variant : captured;
  Interpreter interpreter(*session, program, {.strict = options.strict});
  const std::vector<Value> held = interpreter.run({});
  return std::move(session->trace);
}

}  // namespace

Trace run_steps(const Program& program, const Platform& platform, const StepOptions& options,
                const MakeModelRunner& make_runner) {
  if (program.captured) return run_captured(program, platform, options);
  TrainingStep training(program, platform, options, make_runner);
  if (!make_runner && options.mode == Mode::train) training.repeat_passes();
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
