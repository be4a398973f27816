#pragma once
// Who makes and who takes each value of a graph.

#include <span>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// Node that makes an input of the graph, or a value that nothing makes.
inline constexpr int32_t kNoNode = -1;

/// Of the graph as it was when this was made.
class DefUse {
 public:
  explicit DefUse(const Graph& graph);

  /// The node that makes the value; kNoNode for an input, and for kNoValue.
  int32_t maker(ValueId value) const {
    return value == kNoValue ? kNoNode : makers_[static_cast<size_t>(value)].node;
  }
  /// Which of the maker's results the value is, counted over all its targets.
  int32_t position(ValueId value) const { return makers_[static_cast<size_t>(value)].position; }
  /// The nodes that take the value, in order; a node that takes it twice stands there twice. Outputs of the
  /// graph are no nodes.
  std::span<const int32_t> users(ValueId value) const {
    const auto v = static_cast<size_t>(value);
    return std::span(users_).subspan(begins_[v], begins_[v + 1] - begins_[v]);
  }

 private:
  struct Maker {
    int32_t node = kNoNode, position = 0;
  };
  std::vector<Maker> makers_;   // per value
  std::vector<size_t> begins_;  // per value: where its users begin; one more at the end
  std::vector<int32_t> users_;  // value by value
};

/// Fills in GraphNode::drops for a graph whose values nobody holds longer than they are used: each goes after
/// the last call that takes it, or after the one that makes it. Inputs and outputs outlive the graph.
void drop_after_last_use(Graph& graph);

}  // namespace metaprof
