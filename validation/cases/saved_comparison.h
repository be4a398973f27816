#pragma once
// The graphs behind the outputs of a case: the nodes, where their gradients go, and what they keep.

#include <string>
#include <vector>

#include "validation/cases/tensor_comparison.h"
#include "validation/recordings/case_log.h"

namespace metaprof {

struct SavedDifference {
  std::string expected, got;
};

/// `outputs`: ours, one per recorded output (undefined where that is none). Nodes are numbered as the
/// recorder numbers them: breadth first from the outputs.
std::vector<SavedDifference> compare_graphs(const RecordedCase& recorded, const std::vector<Tensor>& outputs,
                                            StorageMap& map);

}  // namespace metaprof
