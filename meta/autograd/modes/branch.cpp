#include "meta/autograd/modes/branch.h"

#include <algorithm>

#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor.h"
#include "meta/autograd/graph/views.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

constexpr int kFunctions = 2;

// Before a call both functions are traced on copies of its tensors, which are empty (utils.py, _from_fun).
void trace_both(Session& session, const std::vector<Tensor>& tensors) {
  for (int i = 0; i < kFunctions; ++i) {
    std::vector<Tensor> copies;
    copies.reserve(tensors.size());
    for (const Tensor& tensor : tensors)
      copies.push_back(call<"empty_strided">(session, tensor.sizes(), tensor.strides(), tensor.dtype(),
                                             Value(), tensor.device()));
  }
}

std::vector<Tensor> tensors_in(const std::vector<Value>& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values)
    if (value.is_tensor()) tensors.push_back(value.tensor());
  return tensors;
}

// Where a backward begins: it does not need what the function gives.
Tensor without_memory(const Tensor& output) {
  Tensor root = alias(output);
  root->storage = {};
  set_gradient_edge(root, gradient_edge(output));
  return root;
}

class BranchFunction final : public Node {
 public:
  BranchFunction(Session& session, const Value& condition, RegionBody body, const std::vector<Value>& inputs)
      : Node(session, "CondAutogradOpBackward", session.call),
        body_(std::move(body)),
        before_{session.modes, session.module},
        condition_(condition),
        inputs_(inputs) {
    for (const Value& value : inputs_) {
      saved_.emplace_back();
      add_next(value.is_tensor() ? gradient_edge(value.tensor()) : Edge());
      if (value.is_tensor()) saved_.back() = SavedTensor(value.tensor(), *this, false);
    }
    record_edges();
  }

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    std::vector<Value> inputs = inputs_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!saved_[i].defined()) continue;
      Tensor detached = alias(saved_[i].unpack(*this));
      detached->requires_grad = is_differentiable(detached.dtype());
      inputs[i] = Value(std::move(detached));
    }
    std::vector<Tensor> given = tensors_in(inputs), roots, gradients;
    for (const Tensor& gradient : incoming) given.push_back(gradient);
    trace_both(session, given);
    run_again(inputs, incoming, roots, gradients);
    return gradients_of(inputs, roots, gradients);
  }

  void release_variables() override {
    for (SavedTensor& saved : saved_) saved.release();
  }

 private:
  void run_again(const std::vector<Value>& inputs, const Gradients& incoming, std::vector<Tensor>& roots,
                 std::vector<Tensor>& gradients) {
    const AgainAsBefore again(session, before_);
    const std::vector<Value> outputs = body_(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || !outputs[i].tensor().requires_grad()) continue;
      roots.push_back(without_memory(outputs[i].tensor()));
      gradients.push_back(incoming[i]);
    }
  }

  Gradients gradients_of(const std::vector<Value>& inputs, const std::vector<Tensor>& roots,
                         const std::vector<Tensor>& gradients) {
    std::vector<Tensor> differentiable = tensors_in(inputs);
    std::erase_if(differentiable, [](const Tensor& tensor) { return !tensor.requires_grad(); });
    Gradients found;
    if (!roots.empty() && !differentiable.empty())
      found = grad(session, roots, differentiable, gradients, {.allow_unused = true});
    Gradients outgoing;
    size_t next = 0;
    for (const Value& value : inputs) {
      outgoing.push_back(Tensor());
      if (!value.is_tensor()) continue;
      if (value.tensor().requires_grad() && next < found.size()) outgoing.back() = found[next++];
      if (!outgoing.back().defined()) outgoing.back() = call<"zeros_like">(session, value.tensor());
    }
    return outgoing;
  }

  RegionBody body_;
  Surroundings before_;
  Value condition_;            // as long as the node lives, not only until its backward
  std::vector<Value> inputs_;  // also: the function that computes gradients has them (utils.py, create_bw_fn)
  std::vector<SavedTensor> saved_;
};

}  // namespace

std::vector<Value> branch(Session& session, const Value& condition, const RegionBody& chosen,
                          const std::vector<Value>& inputs) {
  trace_both(session, tensors_in(inputs));
  const bool needs_gradients = std::ranges::any_of(
      inputs, [](const Value& value) { return value.is_tensor() && value.tensor().requires_grad(); });
  if (!session.modes.grad || !needs_gradients) return chosen(inputs);
  return run_as_function(session, make<BranchFunction>(session, condition, chosen, inputs), chosen, inputs);
}

}  // namespace metaprof
