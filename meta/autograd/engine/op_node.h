#pragma once
// The node of a call of an operator with a derivative: its saved tensors, and its rows run in order.

#include "meta/autograd/graph/saved_tensor.h"

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

  /// What was saved, in the order of Operator::saved; of a list argument in `saved_list`.
  const SavedTensor& saved(size_t i) const { return saved_[i]; }
  size_t saved_count() const { return saved_.size(); }
  std::span<const SavedTensor> saved_list(size_t i) const {
    if (saved_lists_.empty()) return {};
    return saved_lists_[i];
  }
  std::string_view name_of(const SavedTensor& saved) const override;

  /// First edge and number of edges of an argument; {0, 0} if it is not differentiable.
  std::pair<size_t, size_t> edges_of(size_t argument) const;
  /// The gradient with this number is wanted by the running backward.
  bool wanted(size_t edge) const;

 private:
  friend struct Backward;
  void add_edges_of_lists(const Call& call);
  void keep_arguments(const Call& call);
  bool guard_allows(const SavedPlan& plan) const;

  void save_list(size_t slot, const Value::Tensors& tensors, bool output);

  SmallVector<SavedTensor, 2> saved_;
  SmallVector<Geometry, 3> geometries_;       // arguments that are single tensors: by Operator::place
  SmallVector<Value, 2> values_;              // the other arguments: by Operator::place
  std::vector<std::vector<Geometry>> lists_;  // arguments that are tensor lists, if any: by argument
  std::vector<std::vector<SavedTensor>> saved_lists_;  // if any: by entry of Operator::saved
  std::vector<uint16_t> first_edge_;  // if there are lists: per entry of op.differentiable, and the end
};

}  // namespace metaprof
