#include "step/compiled/aot/compiled_step.h"

#include <algorithm>
#include <set>

#include "meta/autograd/engine/engine.h"
#include "step/compiled/aot/call_collector.h"
#include "step/compiled/aot/decompose.h"
#include "step/compiled/aot/upsampling.h"
#include "step/training_step.h"

namespace metaprof {
namespace {

CallCollector::InputKind kind_of(const ProgramInput& input) {
  switch (input.kind) {
    case ProgramInput::Kind::parameter: return CallCollector::InputKind::parameter;
    case ProgramInput::Kind::user: return CallCollector::InputKind::user;
    default: return CallCollector::InputKind::buffer;
  }
}

// Removes calls whose results nobody uses. `needed`: per memory.
void remove_dead(std::vector<CompiledCall>& calls, std::vector<bool>& needed) {
  std::vector<CompiledCall> kept;
  for (size_t i = calls.size(); i-- > 0;) {
    const auto wanted = [&](MemoryId memory) {
      return memory != kNoMemory && needed[static_cast<size_t>(memory)];
    };
    if (!std::ranges::any_of(calls[i].results, wanted)) continue;
    visit_uses(calls[i], [&](MemoryId memory) { needed[static_cast<size_t>(memory)] = true; });
    kept.push_back(std::move(calls[i]));
  }
  std::ranges::reverse(kept);
  calls = std::move(kept);
}

// What makes the framework's compiler do something else than compile the whole as two graphs.
std::string otherwise_compiled(const Program& program, const StepOptions& options) {
  if (!options.checkpoint.empty() || !program.graph.checkpoints.empty())
    return "checkpointed regions are in it, which the compiler cuts in its own way";
  return "";
}

class Compiler {
 public:
  Compiler(const Program& program, const Platform& platform, const StepOptions& options)
      : program_(decomposed_for_compiler(program, platform.framework)),
        options_(options),
        training_(program_, platform, options_, [this](const Program& indexed) {
          return [this, &indexed](Session& session, const std::vector<Value>& inputs) {
            return run_program(session, indexed, inputs);
          };
        }) {}

  CompiledStep run() {
    Session& session = training_.session();
    session.modes.autocast_cache = false;  // the compiler traces without it
    add_inputs();
    session.backends = {&collector_, &collector_};
    const UpsamplingByIndices upsampling(session);
    training_.forward(0, -1);
    step_.only_views = makes_only_views();
    run_backward(session);
    session.backends = {};
    outputs_.clear();
    cut();
    return std::move(step_);
  }

 private:
  void add_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Value& value = training_.placed().inputs[i];
      if (!value.is_tensor() || !value.tensor().defined() || !value.tensor().is_cuda()) continue;
      if (!std::ranges::count(memories_, value.tensor()->storage->id, &Input::storage))
        memories_.push_back({.memory = collector_.add_input(value.tensor(), kind_of(program_.inputs[i])),
                             .number = i,
                             .storage = value.tensor()->storage->id});
    }
  }

  // Also keeps the outputs.
  std::vector<Value> run_program(Session& session, const Program& indexed, const std::vector<Value>& inputs) {
    interpreter_ = std::make_unique<Interpreter>(
        session, indexed,
        Interpreter::Options{
            .strict = options_.strict, .dtype = state_dtype(options_.precision), .moves_indices = false});
    outputs_ = interpreter_->run(inputs);
    return outputs_;
  }

  bool makes_only_views() {
    const auto is_view = [&](const Value& output) {
      return output.is_tensor() && output.tensor().defined() &&
             std::ranges::count(memories_, output.tensor()->storage->id, &Input::storage) > 0;
    };
    return collector_.calls().empty() && !outputs_.empty() && std::ranges::all_of(outputs_, is_view);
  }

  void run_backward(Session& session) {
    collector_.begin_backward();
    std::vector<Tensor> roots, gradients;
    for (const Value& output : outputs_) {
      const bool is_tensor = output.is_tensor() && output.tensor().defined();
      step_.differentiable.push_back(is_tensor && output.tensor().requires_grad() && !step_.only_views);
      step_.constants.push_back(is_tensor ? Value() : output);
      results_.push_back(is_tensor ? collector_.view_of(output.tensor()) : MemoryView());
      if (!step_.differentiable.back()) continue;
      roots.push_back(output.tensor());
      const int64_t bytes = output.tensor().numel() * element_size(output.tensor().dtype());
      gradients.push_back(tensor_of(results_.back(), session.allocate(session.device, bytes)));
      gradients.back()->offset = 0;
      tangents_.push_back(collector_.add_gradient(gradients.back()));
    }
    session.begin_phase(Phase::backward, 0, -1);
    if (!roots.empty()) metaprof::backward(session, roots, gradients);
  }

  // Its geometry is nobody's concern.
  static MemoryView whole(MemoryId memory) {
    MemoryView view;
    view.memory = memory;
    return view;
  }

  void cut() {
    take_gradients();  // the collector may learn of their memory only here
    const auto begins =
        static_cast<ptrdiff_t>(std::min(collector_.backward_begins(), collector_.calls().size()));
    const auto all = collector_.calls().begin();
    step_.forward.calls.assign(all, all + begins);
    step_.backward.calls.assign(all + begins, collector_.calls().end());
    step_.forward.memories = step_.backward.memories = collector_.memories();
    step_.not_modelled = otherwise_compiled(program_, options_);
    if (step_.not_modelled.empty()) step_.not_modelled = collector_.not_modelled();
    keep_for_backward(take_outputs());
    note_drops(step_.forward);
    note_drops(step_.backward);
  }

  void take_gradients() {
    const std::vector<Tensor>& trainable = training_.placed().trainable;
    for (size_t i = 0; i < trainable.size(); ++i) {
      const Tensor gradient = trainable[i].grad();
      if (!gradient.defined()) continue;
      const MemoryView view = collector_.view_of(gradient);
      if (view.memory == kNoMemory) continue;  // of the host
      step_.backward.outputs.push_back(view);
      step_.parameters.push_back(i);
    }
  }

  // Inputs, and what the program writes to them, in the order of inputs; then the loss.
  std::set<MemoryId> take_outputs() {
    std::set<MemoryId> made_before_backward;
    for (const MemoryId memory : collector_.used_inputs()) {
      const auto input = std::ranges::find(memories_, memory, &Input::memory);
      if (program_.inputs[input->number].kind == ProgramInput::Kind::constant_tensor)
        step_.attributes.push_back(step_.inputs.size());
      step_.inputs.push_back(input->number);
      step_.forward.inputs.push_back(memory);
      made_before_backward.insert(memory);
      const MemoryId now = collector_.now(memory);
      if (now != memory) step_.forward.outputs.push_back(whole(now));
    }
    step_.updates = step_.forward.outputs.size();
    for (const MemoryView& result : results_)
      if (!step_.only_views && made_before_backward.contains(result.memory) && step_.not_modelled.empty())
        step_.not_modelled = "a part that is compiled by itself returns a view of what it was given";
    step_.forward.outputs.insert(step_.forward.outputs.end(), results_.begin(), results_.end());
    for (const CompiledCall& call : step_.forward.calls)
      made_before_backward.insert(call.results.begin(), call.results.end());
    return made_before_backward;
  }

  void keep_for_backward(const std::set<MemoryId>& made_before) {
    std::vector<bool> needed(collector_.memories(), false);
    for (const MemoryView& output : step_.backward.outputs) needed[static_cast<size_t>(output.memory)] = true;
    remove_dead(step_.backward.calls, needed);
    const auto keep = [&](MemoryId memory) {
      if (memory == kNoMemory || !made_before.contains(memory) || !needed[static_cast<size_t>(memory)])
        return;
      step_.forward.outputs.push_back(whole(memory));
      step_.backward.inputs.push_back(memory);
    };
    std::ranges::for_each(step_.forward.inputs, keep);
    for (const CompiledCall& call : step_.forward.calls) std::ranges::for_each(call.results, keep);
    step_.backward.inputs.insert(step_.backward.inputs.end(), tangents_.begin(), tangents_.end());
    std::vector<bool> wanted(collector_.memories(), false);
    for (const MemoryView& output : step_.forward.outputs)
      if (output.memory != kNoMemory) wanted[static_cast<size_t>(output.memory)] = true;
    remove_dead(step_.forward.calls, wanted);
  }

  struct Input {
    MemoryId memory;
    size_t number;     // in the program
    uint32_t storage;  // its number in the trace
  };
  const Program program_;
  const StepOptions options_;
  TrainingStep training_;
  CallCollector collector_;
  std::unique_ptr<Interpreter> interpreter_;  // computes again in backward
  CompiledStep step_;
  std::vector<Input> memories_;
  std::vector<Value> outputs_;
  std::vector<MemoryView> results_;  // what the outputs are
  std::vector<MemoryId> tangents_;   // gradients of those that have one
};

}  // namespace

CompiledStep compile_step(const Program& program, const Platform& platform, const StepOptions& options) {
  return Compiler(program, platform, options).run();
}

}  // namespace metaprof
