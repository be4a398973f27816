#pragma once
// Calls of a program that do not simply keep what backward needs: it is computed again, or waits in host memory.

#include <cstddef>
#include <string>
#include <vector>

namespace metaprof {

/// Calls of one operator whose results a region keeps although it is computed again.
struct KeptCalls {
  std::string op;          ///< without its namespace: "mm", "add.Tensor"
  std::vector<int> which;  ///< the n-th calls in the region, from 0, in order; empty: all
  friend bool operator==(const KeptCalls&, const KeptCalls&) = default;
};

/// Consecutive nodes of a graph.
struct RecomputeRegion {
  size_t begin = 0, end = 0;  ///< indices of nodes
  bool reentrant = false;     ///< computed again by the reentrant method
  bool offload = false;       ///< nothing is computed again: what is saved waits in pinned host memory
  std::vector<KeptCalls> kept =
      {};  ///< a selective checkpoint; only in a region by itself, without reentrancy
  std::vector<RecomputeRegion> inside = {};  ///< in order, none inside another of them
  friend bool operator==(const RecomputeRegion&, const RecomputeRegion&) = default;
};

}  // namespace metaprof
