#pragma once
// Which values of a graph may share memory, and which of them somebody writes to: what moves, merges or drops nodes
// asks first. It errs on one side: two values that it keeps apart never share memory, as far as schemas say.

#include <unordered_map>

#include "step/compiled/ir/graph.h"

namespace metaprof::ir {

class Aliases {
 public:
  explicit Aliases(const Graph& graph);

  bool may_share(const Value* a, const Value* b) const { return root(a) == root(b); }
  /// Something in the graph writes to memory that the value may see.
  bool is_written(const Value* value) const { return written_.contains(root(value)); }
  /// The node writes, or takes or makes what somebody writes to: it stays where it is.
  bool touches_written(const Node& node) const;

 private:
  void add(const Block& block);
  void add(const Node& node);
  void add_call(const Node& node);
  const Value* root(const Value* value) const;
  void unite(const Value* a, const Value* b);
  void write(const Value* value) { written_.emplace(root(value), true); }

  mutable std::unordered_map<const Value*, const Value*> parents_;
  std::unordered_map<const Value*, bool> written_;
  std::vector<const Value*> writes_;
};

/// The node does something besides making its outputs: it writes, or has one inside that does.
bool has_effects(const Node& node);

}  // namespace metaprof::ir
