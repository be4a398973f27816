#pragma once
// The node of a call of an operator with a derivative: its saved tensors, and its rows run in order.

#include "meta/autograd/saved_tensor.h"

namespace metaprof {

class OpNode final : public Node, public Pooled<OpNode> {
 public:
  /// Collects the edges of the call's arguments; saves nothing yet.
  explicit OpNode(const Call& call);

  const Operator& op;

  /// Saves the arguments that formulas read, where a guard allows it. Before the kernel runs.
  void save_arguments(const Call& call);
  /// Saves the results that formulas read. After the history of the results is set.
  void save_results(const Call& call);

  Gradients apply(Gradients& incoming) override;
  void release_variables() override;

  /// What was saved, in the order of Operator::saved; a list argument has several.
  struct Slot {
    SavedTensor one;
    std::vector<SavedTensor> many;
  };
  std::span<const Slot> slots() const { return {saved_.data(), saved_.size()}; }

  /// First edge and number of edges of an argument; {0, 0} if it is not differentiable.
  std::pair<size_t, size_t> edges_of(size_t argument) const;
  /// The gradient with this number is wanted by the running backward.
  bool wanted(size_t edge) const;

 private:
  friend struct Backward;
  void keep_arguments(const Call& call);
  bool guard_allows(const SavedPlan& plan) const;

  SmallVector<Value, 6> values_;              // arguments that are no tensors
  SmallVector<Geometry, 4> geometries_;       // arguments that are tensors; undefined for others
  std::vector<std::vector<Geometry>> lists_;  // arguments that are tensor lists, if any: by argument
  SmallVector<uint16_t, 4> first_edge_;       // per entry of op.differentiable, and the end
  SmallVector<Slot, 2> saved_;
};

}  // namespace metaprof
