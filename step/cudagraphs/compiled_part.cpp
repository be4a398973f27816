#include "step/cudagraphs/compiled_part.h"

#include <algorithm>

#include "meta/autograd/graph/function_node.h"
#include "meta/autograd/graph/views.h"

namespace metaprof {

CompiledPart::CompiledPart(Process& process, size_t program_inputs, CompiledStep compiled,
                           const PartFunctions* functions)
    : process_(process), program_inputs_(program_inputs), compiled_(std::move(compiled)) {
  if (functions != nullptr) {
    functions_ = *functions;
  } else {
    const bool learns = !compiled_.backward.outputs.empty();
    const auto add = [&](const CompiledGraph& graph, GraphFunction::Part part, std::vector<size_t> fixed) {
      process_.runner.add(graph, part == GraphFunction::Part::backward);
      return process_.tree.add(
          {.part = part, .inputs = graph.inputs.size(), .fixed = std::move(fixed), .written = {}});
    };
    functions_.forward =
        add(compiled_.forward, learns ? GraphFunction::Part::forward : GraphFunction::Part::inference,
            compiled_.attributes);
    if (learns) functions_.backward = add(compiled_.backward, GraphFunction::Part::backward, {});
  }
  const std::vector<Value>& placed = process_.training.placed().inputs;
  for (const size_t input : compiled_.inputs)
    fixed_inputs_.push_back(input < program_inputs_ ? process_.runner.hold(placed[input].tensor()->storage)
                                                    : nullptr);
}

MemoryHandles CompiledPart::inputs(const std::vector<Value>& handed) const {
  MemoryHandles inputs = fixed_inputs_;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i])
      inputs[i] = process_.runner.hold(handed[compiled_.inputs[i] - program_inputs_].tensor()->storage);
  return inputs;
}

MemoryHandles CompiledPart::run_function(FunctionId function, bool captured, MemoryHandles inputs) {
  process_.runner.notice_deaths();
  return captured ? process_.tree.run(function, std::move(inputs))
                  : process_.runner.run_eagerly(function, std::move(inputs));
}

// What inputs have become is copied to them; it goes before the outputs are used.
std::vector<Value> CompiledPart::run(const std::vector<Value>& handed) {
  MemoryHandles made = run_function(functions_.forward, process_.captures_forward, inputs(handed));
  if (compiled_.only_views) return {};
  made.erase(made.begin(), made.begin() + static_cast<ptrdiff_t>(compiled_.updates));
  std::vector<Value> outputs = compiled_.constants;
  std::vector<Tensor> differentiable;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!made[i]) continue;
    const Tensor output = tensor_of(compiled_.forward.outputs[compiled_.updates + i],
                                    process_.runner.hand_over(std::move(made[i])));
    if (compiled_.differentiable[i]) differentiable.push_back(output);
    outputs[i] = Value(output);
  }
  made.erase(made.begin(), made.begin() + static_cast<ptrdiff_t>(outputs.size()));
  if (functions_.backward >= 0) differentiate(differentiable, std::move(made), handed);
  return outputs;
}

void CompiledPart::differentiate(const std::vector<Tensor>& outputs, MemoryHandles kept,
                                 const std::vector<Value>& handed) {
  auto node = make<FunctionNode>(process_.training.session(), "CompiledFunctionBackward",
                                 [this, kept = std::move(kept)](Gradients& gradients) mutable {
                                   return run_backward(std::move(kept), gradients);
                                 });
  std::vector<Tensor> learning = process_.training.placed().trainable;
  for (const Value& value : handed)
    if (value.is_tensor() && value.tensor().requires_grad()) learning.push_back(value.tensor());
  for (const size_t i : compiled_.parameters) node->add_next(gradient_edge(learning[i]));
  for (const Tensor& output : outputs) set_gradient_edge(output, {Ref<Node>(node), node->add_output(output)});
  node->record_edges();
}

// A gradient has the strides of its output, with which the backward was traced
// (torch/_functorch/_aot_autograd/runtime_wrappers.py, coerce_to_expected_memory_format).
Tensor CompiledPart::as_traced(const Tensor& gradient, const MemoryView& output) const {
  if (gradient.strides() == output.strides) return gradient;
  Session& session = process_.training.session();
  const BelowAutograd below(session);
  Tensor copy = session.empty_strided(output.sizes, output.strides, gradient.dtype(), gradient.device());
  call<"copy_">(session, copy, gradient);
  return copy;
}

// Of gradients that this graph uses, or that others have used up since.
void CompiledPart::end_loans(const Gradients& used) {
  std::erase_if(process_.lent, [&](const Ref<Storage>& storage) {
    return storage->use_count() == 1 || std::ranges::any_of(used, [&](const Tensor& gradient) {
             return gradient->storage->id == storage->id;
           });
  });
}

Gradients CompiledPart::run_backward(MemoryHandles kept, Gradients& gradients) {
  size_t next = 0;
  for (size_t i = 0; i < compiled_.differentiable.size(); ++i)
    if (compiled_.differentiable[i])
      kept.push_back(process_.runner.hold(
          as_traced(gradients[next++], compiled_.forward.outputs[compiled_.updates + i])->storage));
  end_loans(gradients);
  if (process_.training.session().platform.framework.compiled_backward_takes_gradients) gradients.clear();
  MemoryHandles made = run_function(functions_.backward, process_.captures_backward, std::move(kept));
  Gradients result;
  const size_t leaves = process_.training.placed().trainable.size();
  for (size_t i = 0; i < made.size(); ++i) {
    result.push_back(tensor_of(compiled_.backward.outputs[i], process_.runner.hand_over(std::move(made[i]))));
    if (compiled_.parameters[i] >= leaves) process_.lent.push_back(result.back()->storage);
  }
  return result;
}

}  // namespace metaprof
