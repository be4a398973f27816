#pragma once
// A model in a process: its tensors on the device, its optimizer, and the parts of its training step, which who
// runs steps puts in order.

#include <memory>

#include "meta/optim/grad_scaler.h"
#include "meta/optim/optimizer.h"
#include "step/eager/interpreter.h"
#include "step/input_gradients.h"
#include "step/model_runner.h"
#include "step/options.h"
#include "step/placement.h"
#include "step/repeated_pass.h"

namespace metaprof {

class TrainingStep {
 public:
  /// Puts the model on the device and makes the optimizer. Program, platform and options outlive it. `make_runner`:
  /// empty for the interpreter. Errors: an optimizer that is not known; those of `make_runner`.
  TrainingStep(const Program& program, const Platform& platform, const StepOptions& options,
               const MakeModelRunner& make_runner = {});
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;

  Session& session() { return *session_; }
  bool has_optimizer() const { return optimizer_ != nullptr; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// A further optimizer of the same parameters. Errors: as the constructor's.
  std::unique_ptr<Optimizer> make_optimizer(const std::string& name, OptimizerImpl implementation);
  /// `optimizer` makes the next updates; gives the one that made them so far.
  std::unique_ptr<Optimizer> exchange_optimizer(std::unique_ptr<Optimizer> optimizer) {
    return std::exchange(optimizer_, std::move(optimizer));
  }
  /// Of the program, those on the host included.
  const PlacedTensors& placed() const { return placed_; }

  /// From here on a pass of one micro-batch that finds what the one before found is not run: what it would do is
  /// written into the trace (repeated_pass.h). For who looks at nothing else than the trace.
  void repeat_passes() { pass_ = std::make_unique<RepeatedPass>(*session_, placed_); }

  /// Forwards run this program from here on; it has the same inputs and outputs, and outlives the step.
  void run_instead(const Program& program);

  /// Runs the model. The loss of the forward before goes when this one's exists. `micro`: -1 where a step has one
  /// micro-batch. Errors: as Interpreter::run.
  void forward(int step, int micro);
  /// Errors: there is no loss; it depends on no parameter that requires grad.
  void backward(int step, int micro);
  /// Clips and updates. Only with an optimizer.
  void update(int step);
  void zero_grad(int step);
  /// Of the last forward; undefined before it, and where there is none.
  const Tensor& loss() const { return loss_; }
  void drop_loss() { loss_ = Tensor(); }

  /// What happened. Nothing may be run after it.
  Trace finish();

 private:
  std::unique_ptr<Interpreter> interpreter_of(const Program& program);
  void run_forward(int step, int micro);
  void run_backward(int step, int micro);

  // Where the program had to be changed for the framework, and what is run instead of it.
  const std::optional<Program> indexed_;
  std::optional<Program> indexed_instead_;
  const Program& program_;
  const StepOptions& options_;
  std::unique_ptr<Session> session_;
  size_t loss_output_ = SIZE_MAX;
  Tensor loss_;
  PlacedTensors placed_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<GradScaler> scaler_;
  std::unique_ptr<InputGradients> input_gradients_;  // of steps that ask for them
  std::unique_ptr<Interpreter> interpreter_;
  ModelRunner runner_;
  std::unique_ptr<RepeatedPass> pass_;
  bool repeats_ = false;  // this pass is written, not run
};

}  // namespace metaprof
