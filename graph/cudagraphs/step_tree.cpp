#include "graph/cudagraphs/step_tree.h"

#include "graph/cudagraphs/pool_runner.h"
#include "meta/autograd/accumulate_grad.h"
#include "meta/session/call.h"
#include "meta/step/training_step.h"

namespace metaprof {
namespace {

class Steps {
 public:
  Steps(const Program& program, const Platform& platform, const StepOptions& options,
        CachingAllocator& allocator)
      : compiled_(compile_step(program, platform, options)),
        options_(options),
        training_(program, platform, options),
        allocator_(allocator),
        runner_(training_.session(), platform.device(), allocator),
        tree_(runner_) {}

  StepTree run(bool captures_forward, bool captures_backward) {
    captures_forward_ = captures_forward;
    captures_backward_ = captures_backward;
    add_functions();
    for (int step = 0; step < options_.steps; ++step) run_step(step);
    runner_.catch_up();
    return {.steps = options_.steps,
            .counters = tree_.counters(),
            .nodes = tree_.nodes(),
            .skips = captures_forward && captures_backward ? 0 : 1,
            .memory = statistics_of(allocator_),
            .not_modelled = compiled_.not_modelled,
            .out_of_memory = runner_.out_of_memory()};
  }

 private:
  void add_functions() {
    runner_.add(compiled_.forward, /*runs_in_backward=*/false);
    runner_.add(compiled_.backward, /*runs_in_backward=*/true);
    forward_ = tree_.add({.part = GraphFunction::Part::forward,
                          .inputs = compiled_.forward.inputs.size(),
                          .fixed = {},
                          .written = {}});
    backward_ = tree_.add({.part = GraphFunction::Part::backward,
                           .inputs = compiled_.backward.inputs.size(),
                           .fixed = {},
                           .written = {}});
    for (const size_t input : compiled_.inputs)
      inputs_.push_back(runner_.hold(training_.placed().inputs[input].tensor()->storage));
  }

  void run_step(int step) {
    if (training_.has_optimizer()) training_.zero_grad(step);
    if (options_.zero_grad_to_none) gradients_.clear();
    for (int micro = 0; micro < options_.accumulate; ++micro) run_passes(step, micro);
    if (training_.has_optimizer()) training_.update(step);
  }

  void run_passes(int step, int micro) {
    Session& session = training_.session();
    session.begin_phase(Phase::forward, static_cast<uint32_t>(step), options_.accumulate > 1 ? micro : -1);
    tree_.begin_generation();
    MemoryHandles made =
        captures_forward_ ? tree_.run(forward_, inputs_) : runner_.run_eagerly(forward_, inputs_);
    // What inputs have become is copied to them; the loss and its gradient are held until backward is over.
    made.erase(made.begin(), made.begin() + static_cast<ptrdiff_t>(compiled_.updates));
    const MemoryHandle loss = std::move(made.front());
    made.erase(made.begin());
    session.begin_phase(Phase::backward, static_cast<uint32_t>(step), options_.accumulate > 1 ? micro : -1);
    const MemoryHandle gradient = runner_.hold(gradient_of_loss());
    made.push_back(gradient);
    take(captures_forward_ && captures_backward_ ? tree_.run(backward_, std::move(made))
                                                 : runner_.run_eagerly(backward_, std::move(made)));
  }

  Ref<Storage> gradient_of_loss() {
    Session& session = training_.session();
    const MemoryView& loss = compiled_.forward.outputs[compiled_.updates];
    return session.allocate(session.device, element_size(loss.dtype), Category::temporary);
  }

  // A gradient that .grad takes over stays the pool's until it is dropped there.
  void take(MemoryHandles made) {
    const Scoped<bool> without_history(training_.session().modes.grad, false);
    for (size_t i = 0; i < made.size(); ++i) {
      const Tensor& parameter = training_.placed().trainable[compiled_.parameters[i]];
      const MemoryHandle held = std::move(made[i]);
      Gradients incoming;
      incoming.push_back(tensor_of(compiled_.backward.outputs[i], PoolRunner::storage_of(held)));
      accumulator_of(parameter)->apply(incoming);
      if (parameter.grad()->storage == PoolRunner::storage_of(held)) gradients_.push_back(held);
    }
  }

  const CompiledStep compiled_;
  const StepOptions& options_;
  TrainingStep training_;
  CachingAllocator& allocator_;
  PoolRunner runner_;
  GraphTree tree_;
  FunctionId forward_ = 0, backward_ = 0;
  bool captures_forward_ = true, captures_backward_ = true;
  MemoryHandles inputs_, gradients_;
};

}  // namespace

StepTree run_tree(const Program& program, const Platform& platform, const StepOptions& options,
                  const CaptureVerdict& forward, const CaptureVerdict& backward,
                  CachingAllocator& allocator) {
  StepTree tree = Steps(program, platform, options, allocator).run(forward.captured(), backward.captured());
  if (tree.not_modelled.empty() && forward.reason == SkipReason::data_read)
    tree.not_modelled = "the compiler breaks the graph where the host reads data: " + forward.place.op;
  return tree;
}

}  // namespace metaprof
