#include "meta/step/step.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/autocast.h"
#include "meta/autograd/engine.h"
#include "meta/ops/all.h"
#include "meta/optim/clip.h"
#include "meta/optim/grad_scaler.h"
#include "meta/run/interpreter.h"
#include "meta/source/whole_slices.h"
#include "meta/step/checkpointed_modules.h"
#include "meta/step/placement.h"

namespace metaprof {
namespace {

class StepPlan {
 public:
  StepPlan(const Program& program, const Platform& platform, const StepOptions& options)
      : program_(program),
        options_(options),
        session_(make_session(with_environment(platform, options.environment))) {
    session_->planned_workspaces = options.workspaces;
    for (size_t i = 0; i < program.outputs.size(); ++i)
      if (program.outputs[i].operand.kind == Operand::Kind::value &&
          program.outputs[i].operand.value == program.loss())
        loss_output_ = i;
  }

  Trace run() {
    Session& session = *session_;
    session.begin_phase(Phase::setup, 0, -1);
    const PlacedTensors placed = place_tensors(session, program_, options_);
    session.trace.add({.kind = Event::Kind::pause});
    make_optimizer(placed);
    {
      Interpreter interpreter(session, program_,
                              {.strict = options_.strict,
                               .training = options_.mode == Mode::train,
                               .dtype = state_dtype(options_.precision),
                               .checkpoints = checkpoints()});
      for (int step = 0; step < options_.steps; ++step) {
        for (int micro = 0; micro < options_.accumulate; ++micro) {
          const int number = options_.accumulate > 1 ? micro : -1;
          forward(interpreter, placed, step, number);
          if (options_.mode == Mode::train) backward_pass(step, number);
        }
        if (optimizer_) update(placed, step);
      }
    }
    Trace trace = std::move(session.trace);
    loss_ = Tensor();
    return trace;
  }

 private:
  std::vector<CheckpointRegion> checkpoints() const {
    if (options_.checkpoint.empty()) return {};
    return checkpointed_modules(program_, options_.checkpoint, options_.checkpoint_reentrant);
  }

  void make_optimizer(const PlacedTensors& placed) {
    if (options_.mode != Mode::train) return;
    if (options_.optimizer != "none") {
      Scoped<Category> born_as(session_->category, Category::optimizer_state);
      optimizer_ = std::make_unique<Optimizer>(*session_, options_.optimizer, options_.optimizer_impl,
                                               placed.trainable);
    }
    if (options_.precision == Precision::amp_fp16) scaler_ = std::make_unique<GradScaler>(*session_);
  }

  void update(const PlacedTensors& placed, int step) {
    Session& session = *session_;
    session.begin_phase(Phase::optimizer, uint32_t(step), -1);
    {
      Scoped<Category> born_as(session.category, Category::temporary);
      if (scaler_ && (options_.clip_norm || options_.clip_value)) scaler_->unscale(*optimizer_);
      if (options_.clip_norm) clip_gradient_norm(session, placed.parameters, *options_.clip_norm);
      if (options_.clip_value) clip_gradient_value(session, placed.parameters, *options_.clip_value);
      if (scaler_) {
        scaler_->step(*optimizer_);
        scaler_->update();
      } else {
        optimizer_->step();
      }
    }
    session.begin_phase(Phase::zero_grad, uint32_t(step), -1);
    optimizer_->zero_grad(options_.zero_grad_to_none);
  }

  void forward(Interpreter& interpreter, const PlacedTensors& placed, int step, int micro) {
    Session& session = *session_;
    session.begin_phase(Phase::forward, uint32_t(step), micro);
    Scoped<Category> born_as(session.category, Category::activation);
    const bool gradients = options_.mode == Mode::train || options_.mode == Mode::eval;
    Scoped<bool> grad(session.modes.grad, gradients);
    Scoped<bool> inference(session.modes.inference, options_.mode == Mode::inference);
    std::vector<Value> outputs;
    if (const std::optional<DType> dtype = autocast_dtype(options_.precision)) {
      AutocastRegion region(session, true, *dtype);
      outputs = interpreter.run(placed.inputs);
    } else {
      outputs = interpreter.run(placed.inputs);
    }
    // The loss of the step before is let go when the name is bound again.
    loss_ = loss_output_ < outputs.size() ? outputs[loss_output_].tensor() : Tensor();
    session.trace.losses.push_back(loss_.defined() && loss_->grad_fn ? grad_fn(loss_)->record + 1 : 0);
  }

  void backward_pass(int step, int micro) {
    Session& session = *session_;
    session.begin_phase(Phase::backward, uint32_t(step), micro);
    if (!loss_.defined())
      fail("{}: no output is a loss (a floating tensor without dimensions): export a model that returns one",
           program_.origin);
    if (!loss_.requires_grad())
      fail("{}: the loss does not depend on any parameter that requires grad", program_.origin);
    if (scaler_) {
      const Tensor scaled = scaler_->scale(loss_);
      const Tensor roots[] = {scaled};
      metaprof::backward(session, roots);
    } else {
      const Tensor roots[] = {loss_};
      metaprof::backward(session, roots);
    }
  }

  const Program& program_;
  const StepOptions& options_;
  std::unique_ptr<Session> session_;
  size_t loss_output_ = SIZE_MAX;
  Tensor loss_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradScaler> scaler_;
};

}  // namespace

Trace run_steps(const Program& program, const Platform& platform, const StepOptions& options) {
  const std::vector<std::string> optimizers = optimizer_names();
  if (std::ranges::find(optimizers, options.optimizer) == optimizers.end())
    fail("--optimizer: '{}' is not one of: {}", options.optimizer, fmt::join(optimizers, ", "));
  std::optional<Program> indexed;  // as this framework indexes
  if (platform.framework.slices_whole_dimensions)
    indexed = with_whole_slices(program);
  else if (has_whole_slices(program.graph))
    indexed = without_whole_slices(program);
  return StepPlan(indexed ? *indexed : program, platform, options).run();
}

}  // namespace metaprof
