#include "graph/cudagraphs/step_tree.h"

#include "graph/aot/graph_break.h"
#include "graph/cudagraphs/compiled_function.h"
#include "graph/cudagraphs/pool_runner.h"
#include "meta/autograd/views.h"
#include "meta/run/interpreter.h"
#include "meta/step/training_step.h"

namespace metaprof {
namespace {

class Steps {
 public:
  Steps(const Program& program, const Platform& platform, const StepOptions& options,
        CachingAllocator& allocator)
      : program_(program),
        platform_(platform),
        options_(options),
        break_(graph_break(program, platform.framework)),
        training_(program, platform, options,
                  [this](const Program& indexed) {
                    indexed_ = &indexed;
                    return [this](Session&, const std::vector<Value>& inputs) { return run_model(inputs); };
                  }),
        allocator_(allocator),
        runner_(training_.session(), platform.device(), allocator),
        tree_(runner_) {
    if (break_.resumes > 0) begin_eagerly();
  }

  StepTree run(bool captures_forward, bool captures_backward) {
    captures_forward_ = captures_forward;
    captures_backward_ = captures_forward && captures_backward;
    for (int step = 0; step < options_.steps; ++step) run_step(step);
    runner_.catch_up();
    return {.steps = options_.steps,
            .counters = tree_.counters(),
            .nodes = tree_.nodes(),
            .skips = captures_backward_ ? 0 : 1,
            .memory = statistics_of(allocator_),
            .not_modelled = break_.not_modelled.empty() ? compiled_->not_modelled : break_.not_modelled,
            .out_of_memory = runner_.out_of_memory()};
  }

 private:
  // A gradient that the backward made, while it may still be the pool's.
  struct MadeGradient {
    size_t parameter;
    const Storage* storage;
    MemoryHandle handle;
  };

  void begin_eagerly() {
    handed_on_ = handed_on(program_, break_.resumes);
    first_ = part_before(*indexed_, graph_break(*indexed_, platform_.framework).resumes, handed_on_);
    interpreter_ = std::make_unique<Interpreter>(
        training_.session(), first_,
        Interpreter::Options{.strict = options_.strict, .dtype = state_dtype(options_.precision)});
  }

  // When the first inputs are there, as the framework compiles.
  void compile(const std::vector<Value>& handed) {
    traced_with_ = handed;
    StepOptions options = options_;
    options.optimizer = "none";
    compiled_ =
        compile_step(break_.resumes == 0 ? program_ : part_from(program_, break_.resumes, handed_on_, handed),
                     platform_, options);
    runner_.add(compiled_->forward, /*runs_in_backward=*/false);
    runner_.add(compiled_->backward, /*runs_in_backward=*/true);
    forward_ = tree_.add({.part = GraphFunction::Part::forward,
                          .inputs = compiled_->forward.inputs.size(),
                          .fixed = {},
                          .written = {}});
    backward_ = tree_.add({.part = GraphFunction::Part::backward,
                           .inputs = compiled_->backward.inputs.size(),
                           .fixed = {},
                           .written = {}});
    for (const size_t input : compiled_->inputs)
      fixed_inputs_.push_back(input < program_.inputs.size()
                                  ? runner_.hold(training_.placed().inputs[input].tensor()->storage)
                                  : nullptr);
    if (captures_forward_) runner_.make_pool();
  }

  void run_step(int step) {
    if (training_.has_optimizer()) training_.zero_grad(step);
    if (options_.zero_grad_to_none) gradients_.clear();
    for (int micro = 0; micro < options_.accumulate; ++micro) {
      const int number = options_.accumulate > 1 ? micro : -1;
      training_.forward(step, number);
      training_.backward(step, number);
      training_.drop_loss();
      loss_.reset();
      keep_gradients();
    }
    if (training_.has_optimizer()) training_.update(step);
  }

  // The program's outputs, of which the step wants the loss alone.
  std::vector<Value> run_model(const std::vector<Value>& inputs) {
    tree_.begin_generation();
    const std::vector<Value> handed = interpreter_ ? interpreter_->run(inputs) : std::vector<Value>();
    if (!compiled_) compile(handed);
    MemoryHandles made = run_forward(handed);
    // What inputs have become is copied to them.
    made.erase(made.begin(), made.begin() + static_cast<ptrdiff_t>(compiled_->updates));
    loss_ = std::move(made.front());
    made.erase(made.begin());
    Tensor loss = tensor_of(compiled_->forward.outputs[compiled_->updates], PoolRunner::storage_of(loss_));
    differentiate(loss, std::move(made), handed);
    std::vector<Value> outputs(program_.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (program_.outputs[i].operand.value == program_.loss()) outputs[i] = Value(loss);
    return outputs;
  }

  MemoryHandles run_forward(const std::vector<Value>& handed) {
    MemoryHandles inputs = fixed_inputs_;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i])
        inputs[i] = runner_.hold(handed[compiled_->inputs[i] - program_.inputs.size()].tensor()->storage);
    return captures_forward_ ? tree_.run(forward_, std::move(inputs))
                             : runner_.run_eagerly(forward_, std::move(inputs));
  }

  void differentiate(const Tensor& loss, MemoryHandles kept, const std::vector<Value>& handed) {
    auto node = make<CompiledFunction>(training_.session(),
                                       [this, kept = std::move(kept)](const Tensor& gradient) mutable {
                                         return run_backward(std::move(kept), gradient);
                                       });
    std::vector<Tensor> learning = training_.placed().trainable;
    for (const Value& value : handed)
      if (value.is_tensor() && value.tensor().requires_grad()) learning.push_back(value.tensor());
    for (const size_t i : compiled_->parameters) node->add_next(gradient_edge(learning[i]));
    set_gradient_edge(loss, {Ref<Node>(node), node->add_output(loss)});
    node->record_edges();
  }

  Gradients run_backward(MemoryHandles kept, const Tensor& gradient) {
    const MemoryHandle incoming = runner_.hold(gradient->storage);
    kept.push_back(incoming);
    const MemoryHandles made = captures_backward_ ? tree_.run(backward_, std::move(kept))
                                                  : runner_.run_eagerly(backward_, std::move(kept));
    Gradients gradients;
    for (size_t i = 0; i < made.size(); ++i) {
      Ref<Storage> storage = PoolRunner::take_storage(made[i]);
      const size_t parameter = compiled_->parameters[i];
      if (parameter < training_.placed().trainable.size())
        made_.push_back({.parameter = parameter, .storage = storage.get(), .handle = made[i]});
      gradients.push_back(tensor_of(compiled_->backward.outputs[i], std::move(storage)));
    }
    return gradients;
  }

  // A gradient that .grad took over stays the pool's until it is dropped there.
  void keep_gradients() {
    for (MadeGradient& made : made_) {
      const Tensor gradient = training_.placed().trainable[made.parameter].grad();
      if (gradient.defined() && gradient->storage.get() == made.storage)
        gradients_.push_back(std::move(made.handle));
    }
    made_.clear();
  }

  const Program& program_;
  const Platform& platform_;
  const StepOptions& options_;
  const GraphBreak break_;
  const Program* indexed_ = nullptr;  // as this framework indexes
  TrainingStep training_;
  std::vector<ValueId> handed_on_;  // by what runs eagerly first
  Program first_;
  std::unique_ptr<Interpreter> interpreter_;  // of `first_`
  CachingAllocator& allocator_;
  std::optional<CompiledStep> compiled_;
  std::vector<Value> traced_with_;  // the compiler holds what it has traced with (recorded)
  PoolRunner runner_;
  GraphTree tree_;
  FunctionId forward_ = 0, backward_ = 0;
  bool captures_forward_ = true, captures_backward_ = true;
  MemoryHandles fixed_inputs_;  // null: it is handed on
  MemoryHandle loss_;
  std::vector<MadeGradient> made_;
  MemoryHandles gradients_;
};

// The compiler makes new memory of what is written to, and numbers part of the program.
bool is_skipped(const CaptureVerdict& verdict) {
  switch (verdict.reason) {
    case SkipReason::several_devices:
    case SkipReason::host_node:
    case SkipReason::incompatible_operator:
    case SkipReason::dynamic_sizes: return true;
    default: return false;
  }
}

}  // namespace

StepTree run_tree(const Program& program, const Platform& platform, const StepOptions& options,
                  const CaptureVerdict& forward, const CaptureVerdict& backward,
                  CachingAllocator& allocator) {
  StepTree tree =
      Steps(program, platform, options, allocator).run(!is_skipped(forward), !is_skipped(backward));
  if (tree.not_modelled.empty() && forward.reason == SkipReason::data_read)
    tree.not_modelled = "the compiler breaks the graph where the host reads data: " + forward.place.op;
  return tree;
}

}  // namespace metaprof
