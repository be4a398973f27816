#pragma once
// A differentiable graph made ready to run: its forward on tensors without history, and one node of autograd that
// runs its gradient, through an executor of its own, when the backward reaches it.

#include "meta/autograd/graph/saved_tensor.h"
#include "step/compiled/executor/code.h"
#include "step/compiled/executor/graph_runner.h"

namespace metaprof::ir {

class DifferentiableCode final : public NodeCode {
 public:
  /// `gradient` may be null: then autograd records what the forward calls.
  DifferentiableCode(const Node& node, Code forward, std::shared_ptr<GraphRunner> gradient);

  std::vector<metaprof::Value> run(Session& session, std::vector<metaprof::Value> inputs) const override;

  /// Null if the graph has no gradient.
  const std::shared_ptr<GraphRunner>& gradient() const { return gradient_; }

 private:
  Code forward_;
  std::shared_ptr<GraphRunner> gradient_;
  size_t real_outputs_ = 0;
  // Of the forward's inputs and outputs, in the order of the gradient's inputs and outputs.
  std::vector<size_t> incoming_, captured_inputs_, captured_outputs_, outgoing_;
};

/// The node of a run of a differentiable graph.
class DifferentiableGraphNode final : public metaprof::Node {
 public:
  DifferentiableGraphNode(Session& session, std::shared_ptr<GraphRunner> gradient);

  /// Where the gradient of an input goes: of a list, those of its tensors.
  void add_outgoing(const metaprof::Value& input);
  /// Kept for the gradient: tensors and lists of them as saved tensors, other values as they are.
  void capture(const metaprof::Value& value, bool output);
  /// An output that has a gradient. Returns it with its history.
  metaprof::Value add_incoming(const metaprof::Value& output);

  Gradients apply(Gradients& incoming) override;
  void release_variables() override;

  /// What is kept: tensors, those of lists one by one.
  size_t captured_tensors() const { return tensors_.size(); }

 private:
  enum class Captured : uint8_t { tensor, list, value };
  static constexpr size_t kSingle = SIZE_MAX;

  std::vector<metaprof::Value> inputs_of_gradient(Gradients& incoming);
  Tensor zeros_like(const Geometry& expected) const;
  void produce(Gradients& outgoing, Tensor gradient) const;

  std::shared_ptr<GraphRunner> gradient_;
  std::vector<Captured> captured_;
  std::vector<SavedTensor> tensors_;
  std::vector<metaprof::Value> values_;
  std::vector<size_t> list_sizes_;      // of captured lists
  std::vector<size_t> incoming_sizes_;  // per output: kSingle, or the tensors in its list
  std::vector<size_t> outgoing_sizes_;  // the same, per input that has a gradient
};

}  // namespace metaprof::ir
