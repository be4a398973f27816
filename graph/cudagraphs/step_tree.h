#pragma once
// Training steps of a model whose forward and backward are captured apart, as the framework's compiler hands
// them over (torch/_dynamo/backends/cudagraphs.py): what the tree of graphs does in each.

#include "graph/cudagraphs/eligibility.h"
#include "graph/cudagraphs/tree.h"

namespace metaprof {

struct StepTree {
  int steps = 0;
  GraphTreeCounters counters;
  std::vector<GraphTree::Node> nodes;  ///< functions: 0 is the forward, 1 the backward
  int64_t skips = 0;                   ///< graphs that were given up before they ran
};

/// Modules are inlined, so that parameters and buffers are inputs like others, which are copied. A forward that
/// is skipped takes its backward with it.
StepTree run_tree(const Program& program, const CaptureVerdict& forward, const CaptureVerdict& backward,
                  int steps);

}  // namespace metaprof
