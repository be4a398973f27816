#include "step/training_step.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/autograd/modes/autocast.h"
#include "meta/ops/all.h"
#include "meta/optim/clip.h"
#include "program/source/whole_slices.h"
#include "step/checkpointed_modules.h"

namespace metaprof {
namespace {

void check_optimizer(const std::string& name) {
  if (name != "none" && !is_optimizer(name))
    fail("--optimizer: '{}' is not one of: {}; {}", name, fmt::join(optimizer_names(), ", "),
         optimizer_endings());
}

// Hooks under which a forward runs; null: none.
std::shared_ptr<SavedTensorHooks> hooks_of(Session& session, SavedHooks hooks) {
  switch (hooks) {
    case SavedHooks::none: return nullptr;
    case SavedHooks::offload: return save_on_host(session);
    case SavedHooks::offload_pinned: return save_on_host(session, true);
    case SavedHooks::pack_bf16: return pack_as(session, DType::bf16);
    case SavedHooks::pack_fp16: return pack_as(session, DType::f16);
  }
  return nullptr;
}

void check_gradients(const StepOptions& options) {
  if (!options.grad.empty()) return;
  if (options.create_graph) fail("--create-graph: it needs --grad with the names of inputs");
  if (options.hvp) fail("--hvp: it needs --grad with the names of inputs");
}

size_t loss_output_of(const Program& program) {
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i].operand.kind == Operand::Kind::value &&
        program.outputs[i].operand.value == program.loss())
      return i;
  return SIZE_MAX;
}

// The program as this framework indexes; nothing: as it is.
std::optional<Program> indexed(const Program& program, const Framework& framework) {
  if (framework.slices_whole_dimensions) return with_whole_slices(program);
  if (has_whole_slices(program.graph)) return without_whole_slices(program);
  return std::nullopt;
}

}  // namespace

TrainingStep::TrainingStep(const Program& program, const Platform& platform, const StepOptions& options,
                           const MakeModelRunner& make_runner)
    : indexed_(indexed(program, platform.framework)),
      program_(indexed_ ? *indexed_ : program),
      options_(options),
      session_(make_session(with_environment(platform, options.environment))),
      loss_output_(loss_output_of(program_)) {
  check_optimizer(options.optimizer);
  session_->planned_workspaces = options.workspaces;
  session_->questions = options.questions;
  autograd_state(*session_).anomaly = options.anomaly;
  autograd_state(*session_).trim_rows = options.trims_gradients;
  check_gradients(options);
  session_->begin_phase(Phase::setup, 0, -1);
  placed_ = place_tensors(*session_, program_, options_);
  if (!options.grad.empty())
    input_gradients_ = std::make_unique<InputGradients>(*session_, program_, options_, placed_);
  session_->trace.add({.kind = Event::Kind::pause});
  if (options.mode == Mode::train) {
    if (options.optimizer != "none" && InputGradients::reach_parameters(options))
      optimizer_ = make_optimizer(options.optimizer, options.optimizer_impl);
    if (options.precision == Precision::amp_fp16) scaler_ = std::make_unique<GradScaler>(*session_);
  }
  interpreter_ = interpreter_of(program_);
  if (make_runner)
    runner_ = make_runner(program_);
  else
    runner_ = [this](Session&, const std::vector<Value>& inputs) { return interpreter_->run(inputs); };
}

TrainingStep::~TrainingStep() = default;

std::unique_ptr<Interpreter> TrainingStep::interpreter_of(const Program& program) {
  std::vector<RecomputeRegion> regions;
  if (!options_.checkpoint.empty())
    regions = checkpointed_modules(program, options_.checkpoint, options_.checkpoint_reentrant);
  return std::make_unique<Interpreter>(
      *session_, program,
      Interpreter::Options{.strict = options_.strict,
                           .training = options_.mode == Mode::train || !program.training,
                           .dtype = state_dtype(options_.precision),
                           .regions = std::move(regions),
                           .condition = options_.condition != "false",
                           .trips = options_.trips.value_or(1)});
}

void TrainingStep::run_instead(const Program& program) {
  indexed_instead_ = indexed(program, session_->platform.framework);
  interpreter_ = interpreter_of(indexed_instead_ ? *indexed_instead_ : program);
}

std::unique_ptr<Optimizer> TrainingStep::make_optimizer(const std::string& name,
                                                        OptimizerImpl implementation) {
  check_optimizer(name);
  Scoped<Category> born_as(session_->category, Category::optimizer_state);
  return std::make_unique<Optimizer>(*session_, name, implementation, placed_.trainable);
}

namespace {

// What a forward without gradients returns (a cache of keys and values, logits) is what it is run for, and no temporary.
void mark_results(Session& session, const std::vector<Value>& outputs) {
  const auto mark = [&](const Tensor& tensor) {
    if (!tensor.defined() || !tensor->storage) return;
    if (session.trace.storages[tensor->storage->id].category == Category::activation)
      session.categorise(*tensor->storage, Category::activation);
  };
  for (const Value& output : outputs) {
    if (output.is_tensor()) mark(output.tensor());
    if (output.is_tensors())
      for (const Tensor& tensor : output.tensors()) mark(tensor);
  }
}

}  // namespace

void TrainingStep::forward(int step, int micro) {
  repeats_ = pass_ && micro < 0 && pass_->repeats(interpreter_->open_modules());
  if (repeats_) return pass_->write_forward(uint32_t(step), loss_);
  if (pass_) pass_->forward_begins(interpreter_->open_modules());
  run_forward(step, micro);
  if (pass_) pass_->forward_ends();
}

void TrainingStep::backward(int step, int micro) {
  if (repeats_) return pass_->write_backward(uint32_t(step));
  run_backward(step, micro);
  if (pass_) pass_->backward_ends(loss_);
}

void TrainingStep::run_forward(int step, int micro) {
  Session& session = *session_;
  session.begin_phase(Phase::forward, uint32_t(step), micro);
  Scoped<Category> born_as(session.category, Category::activation);
  const bool gradients = options_.mode == Mode::train || options_.mode == Mode::eval;
  Scoped<bool> grad(session.modes.grad, gradients);
  Scoped<bool> inference(session.modes.inference, options_.mode == Mode::inference);
  std::optional<SavedTensorHooksScope> hooks;
  if (auto kept_as = hooks_of(session, options_.hooks)) hooks.emplace(session, std::move(kept_as));
  std::vector<Value> outputs;
  if (const std::optional<DType> dtype = autocast_dtype(options_.precision)) {
    AutocastRegion region(session, true, *dtype);
    outputs = runner_(session, placed_.inputs);
  } else {
    outputs = runner_(session, placed_.inputs);
  }
  if (!gradients) mark_results(session, outputs);
  // The loss of the step before is let go when the name is bound again.
  loss_ = loss_output_ < outputs.size() ? outputs[loss_output_].tensor() : Tensor();
  if (pass_) pass_->loss_is_bound();
  session.trace.losses.push_back(loss_.defined() && loss_->grad_fn ? grad_fn(loss_)->record + 1 : 0);
}

void TrainingStep::run_backward(int step, int micro) {
  Session& session = *session_;
  session.begin_phase(Phase::backward, uint32_t(step), micro);
  if (!loss_.defined())
    fail("{}: no output is a loss (a floating tensor without dimensions): export a model that returns one",
         program_.origin);
  if (!loss_.requires_grad())
    fail("{}: the loss does not depend on any parameter that requires grad", program_.origin);
  if (input_gradients_) {
    input_gradients_->differentiate(loss_);
  } else if (scaler_) {
    const Tensor scaled = scaler_->scale(loss_);
    const Tensor roots[] = {scaled};
    metaprof::backward(session, roots);
  } else {
    const Tensor roots[] = {loss_};
    metaprof::backward(session, roots);
  }
}

void TrainingStep::update(int step) {
  Session& session = *session_;
  session.begin_phase(Phase::optimizer, uint32_t(step), -1);
  Scoped<Category> born_as(session.category, Category::temporary);
  if (scaler_ && (options_.clip_norm || options_.clip_value)) scaler_->unscale(*optimizer_);
  if (options_.clip_norm) clip_gradient_norm(session, placed_.parameters, *options_.clip_norm);
  if (options_.clip_value) clip_gradient_value(session, placed_.parameters, *options_.clip_value);
  if (scaler_) {
    scaler_->step(*optimizer_);
    scaler_->update();
  } else {
    optimizer_->step();
  }
}

void TrainingStep::zero_grad(int step) {
  session_->begin_phase(Phase::zero_grad, uint32_t(step), -1);
  optimizer_->zero_grad(options_.zero_grad_to_none);
}

namespace {

// Sizes that follow from data and that the program does not say: those of its own calls are refused before they run.
void refuse_assumed_sizes(const Program& program, const Trace& trace) {
  for (const CallRecord& call : trace.calls)
    if (call.assumed)
      fail("{}: {} (module '{}'): the size of its result follows from data; leave out --strict to go on",
           program.origin, trace.text(call.op), trace.text(call.module));
}

}  // namespace

// What Python holds when the last step is over (the loss, attributes of the model) is still there then.
Trace TrainingStep::finish() {
  if (options_.strict) refuse_assumed_sizes(program_, session_->trace);
  return std::move(session_->trace);
}

}  // namespace metaprof
