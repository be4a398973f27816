#include "meta/autograd/modes/checkpoint.h"

#include <map>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/saved_tensor.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/graph/views.h"
#include "meta/autograd/modes/selective_checkpoint.h"

namespace metaprof {
namespace {

// Keeps tensors for backward and gives no gradients: the node of _NoopSaveInputs.
class SavedInputs final : public Node {
 public:
  SavedInputs(Session& session, const std::vector<Value>& inputs)
      : Node(session, "_NoopSaveInputsBackward", session.call), plain_(inputs) {
    for (Value& value : plain_) {
      saved_.emplace_back();
      if (!value.is_tensor()) continue;
      saved_.back() = SavedTensor(value.tensor(), *this, false);
      value = Value();
    }
  }
  Gradients apply(Gradients&) override { return {}; }
  std::vector<Value> unpack() {
    std::vector<Value> inputs = plain_;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (saved_[i].defined()) inputs[i] = Value(saved_[i].unpack(*this));
    return inputs;
  }
  void release_variables() override {
    for (SavedTensor& saved : saved_) saved.release();
  }

 private:
  std::vector<Value> plain_;
  std::vector<SavedTensor> saved_;
};

class Frame;

// Stands for one saved tensor of the region; holds the tensor once it is computed again, by the backward that
// asked.
struct Placeholder final : Counted {
  Placeholder(Ref<Frame> frame, size_t index) : frame(std::move(frame)), index(index) {}
  ~Placeholder() override;
  Ref<Frame> frame;
  size_t index;
  std::map<uint32_t, Tensor> again;
};

class Frame final : public Counted {
 public:
  Frame(Session& session, RegionBody body, const std::vector<Value>& inputs, const CheckpointOptions& options)
      : session_(session),
        body_(std::move(body)),
        inputs_(make<SavedInputs>(session, inputs)),
        before_{session.modes, session.module},
        early_stop_(options.early_stop) {
    if (!options.policy) return;
    selective_ = std::make_unique<SelectiveCache>();
    selective_->policy = options.policy;
  }

  SelectiveCache* selective() { return selective_.get(); }

  Ref<Counted> pack() {
    auto placeholder = make<Placeholder>(Ref<Frame>(this), placeholders_.size());
    placeholders_.push_back(placeholder.get());
    return placeholder;
  }

  Tensor unpack(Placeholder& placeholder) {
    // Outside of a backward nobody says which reads belong together: each computes the region again.
    AutogradState& state = autograd_state(session_);
    const uint32_t task = state.running_number ? state.running_number : ++state.task_count;
    if (!computed_[task]) {
      compute_again(task);
      computed_[task] = true;
    }
    auto found = placeholder.again.find(task);
    if (found == placeholder.again.end())
      fail(
          "checkpoint: a tensor that was saved in forward was not saved when the region was computed again, "
          "or is asked for twice in one backward");
    Tensor tensor = std::move(found->second);
    placeholder.again.erase(found);
    return tensor;
  }

  void forget(size_t index) { placeholders_[index] = nullptr; }

 private:
  // Thrown by the last pack: the rest of the region is not needed (early stop).
  struct Complete {};

  void compute_again(uint32_t task) {
    size_t next = 0;
    auto hooks = std::make_shared<SavedTensorHooks>();
    struct Kept final : Counted {
      explicit Kept(Tensor tensor) : tensor(std::move(tensor)) {}
      Tensor tensor;
    };
    hooks->pack = [&, this](const Tensor& tensor) -> Ref<Counted> {
      const Tensor plain = tensor.requires_grad() ? alias(tensor) : tensor;
      if (next >= placeholders_.size())
        fail("checkpoint: the region saved more tensors when it was computed again");
      if (Placeholder* placeholder = placeholders_[next]) placeholder->again[task] = plain;
      if (++next == placeholders_.size() && early_stop_) throw Complete();
      return make<Kept>(plain);
    };
    hooks->unpack = [](Counted& kept) { return static_cast<Kept&>(kept).tensor; };
    const std::vector<Value> inputs = inputs_->unpack();
    AgainAsBefore again(session_, before_);
    const SelectiveScope selective(session_, selective_.get(), true);
    const SavedTensorHooksScope packing(session_, hooks);
    try {
      body_(inputs);
    } catch (Complete) {
    }
  }

  Session& session_;
  RegionBody body_;
  Ref<SavedInputs> inputs_;
  Surroundings before_;
  bool early_stop_;
  std::unique_ptr<SelectiveCache> selective_;
  std::vector<Placeholder*> placeholders_;  // not owned: saved tensors own them
  std::map<uint32_t, bool> computed_;       // by backward
};

Placeholder::~Placeholder() { frame->forget(index); }

std::vector<Value> checkpoint_with_placeholders(Session& session, const RegionBody& body,
                                                const std::vector<Value>& inputs,
                                                const CheckpointOptions& options) {
  auto frame = make<Frame>(session, body, inputs, options);
  auto hooks = std::make_shared<SavedTensorHooks>();
  hooks->pack = [frame](const Tensor&) { return frame->pack(); };
  hooks->unpack = [frame](Counted& placeholder) {
    return frame->unpack(static_cast<Placeholder&>(placeholder));
  };
  const SelectiveScope selective(session, frame->selective(), false);
  const SavedTensorHooksScope packing(session, std::move(hooks));
  return body(inputs);
}

class CheckpointFunction final : public PartFunction {
 public:
  CheckpointFunction(Session& session, RegionBody body, const std::vector<Value>& inputs)
      : PartFunction(session, "CheckpointFunctionBackward", std::move(body), inputs) {}

  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    const std::vector<Value> inputs = unpack();
    std::vector<Value> outputs;
    {
      AgainAsBefore again(session, before_);
      outputs = body_(inputs);
    }
    std::vector<Tensor> roots, gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || !outputs[i].tensor().requires_grad()) continue;
      roots.push_back(outputs[i].tensor());
      gradients.push_back(incoming[i]);
    }
    if (roots.empty())
      fail("checkpoint: none of the region's outputs requires grad when it is computed again");
    metaprof::backward(session, roots, gradients);
    Gradients outgoing;
    for (const Value& value : inputs)
      outgoing.push_back(value.is_tensor() ? value.tensor().grad() : Tensor());
    return outgoing;
  }
};

std::vector<Value> checkpoint_reentrant(Session& session, const RegionBody& body,
                                        const std::vector<Value>& inputs) {
  return run_as_function(session, make<CheckpointFunction>(session, body, inputs), body, inputs);
}

}  // namespace

std::vector<Value> checkpoint(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                              const CheckpointOptions& options) {
  if (options.reentrant && options.policy) fail("checkpoint: a reentrant one computes everything again");
  if (!session.modes.grad) return body(inputs);
  return options.reentrant ? checkpoint_reentrant(session, body, inputs)
                           : checkpoint_with_placeholders(session, body, inputs, options);
}

}  // namespace metaprof
