#pragma once
// Numbered modules in a row that are made of the same nodes: a drawing shows the first for all of them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/nodes/nodes.h"

namespace metaprof {

class EqualLayers {
 public:
  /// `fold`: false: all layers are drawn.
  EqualLayers(const std::vector<NodeRow>& rows, bool fold);

  /// The row of the first equal layer that stands for this one; itself, if there is none.
  size_t stands_for(size_t row) const { return same_as_[row]; }
  /// Whether they are in different ones of some equal layers: what one hands to the next.
  bool between_layers(size_t row, size_t other) const;
  /// "model.layers.0 … 31, 32 equal ones" of "model.layers.0"; other paths are themselves.
  std::string title(const std::string& path) const;

 private:
  void find_equal_ones();
  std::string drawn(std::string_view path) const;

  const std::vector<NodeRow>& rows_;
  std::map<std::string, std::string, std::less<>> first_;  ///< of each numbered module the first equal one
  std::map<std::string, std::string, std::less<>> last_;   ///< of each first one the number of the last
  std::map<std::string, size_t, std::less<>> count_;       ///< of each first one
  std::vector<size_t> same_as_;
};

}  // namespace metaprof
