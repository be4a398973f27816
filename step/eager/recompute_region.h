#pragma once
// Calls of a program that do not simply keep what backward needs: it is computed again, or waits in host memory.

#include <cstddef>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// Consecutive nodes of a graph.
struct RecomputeRegion {
  size_t begin = 0, end = 0;  ///< indices of nodes
  bool reentrant = false;     ///< computed again by the reentrant method
  bool whole = false;         ///< to its end, also what backward does not need
  bool offload = false;       ///< nothing is computed again: what is saved waits in pinned host memory
  std::vector<KeptCalls> kept =
      {};  ///< a selective checkpoint; only in a region by itself, without reentrancy
  std::vector<RecomputeRegion> inside = {};  ///< in order, none inside another of them
  friend bool operator==(const RecomputeRegion&, const RecomputeRegion&) = default;
};

}  // namespace metaprof
