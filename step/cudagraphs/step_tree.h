#pragma once
// Training steps of a model whose forward and backward are captured apart, as the framework's compiler hands
// them over (torch/_dynamo/backends/cudagraphs.py): what the tree of graphs does in each, and the memory that it
// takes.

#include <optional>
#include <string>

#include "step/cudagraphs/eligibility.h"
#include "step/cudagraphs/memory_statistics.h"
#include "step/cudagraphs/tree.h"
#include "step/options.h"

namespace metaprof {

struct StepTree {
  int steps = 0;
  GraphTreeCounters counters;
  std::vector<GraphTree::Node> nodes;
  std::vector<std::string> functions;  ///< by number: "forward", "backward"; several parts have several
  int64_t skips = 0;                   ///< graphs that were given up before they ran
  MemoryStatistics memory;             ///< after the steps; peaks since the process began
  std::string not_modelled;            ///< why `memory` is not the framework's; empty: it is
  std::optional<Bytes> out_of_memory;  ///< what was asked for when memory ran out
  /// The call with which the framework ends the step with an error, since it takes an output that a later run has
  /// overwritten: "aten::add_ in backward of step 1"; empty: none. `memory` is that of this moment.
  std::string overwritten;
};

/// `optimizer.zero_grad(); model(inputs).backward(); optimizer.step()`, `options.steps` times. Modules are inlined,
/// so that parameters and buffers are inputs like others, which are copied. A forward that is skipped takes its
/// backward with it; what is skipped runs eagerly. Errors: as run_steps.
StepTree run_tree(const Program& program, const Platform& platform, const StepOptions& options,
                  const CaptureVerdict& forward, const CaptureVerdict& backward, CachingAllocator& allocator);

}  // namespace metaprof
