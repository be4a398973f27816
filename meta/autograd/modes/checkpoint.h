#pragma once
// Activation checkpointing (torch/utils/checkpoint.py, PyTorch 2.11): a region keeps its inputs and is
// computed again in backward.

#include "meta/autograd/graph/state.h"
#include "meta/autograd/modes/checkpoint_policy.h"
#include "meta/autograd/modes/run_again.h"

namespace metaprof {

struct CheckpointOptions {
  bool reentrant = false;
  bool early_stop = true;                ///< computing again ends with the last tensor that is needed
  CheckpointPolicyFunction policy = {};  ///< only without reentrancy; none: everything is computed again
};

/// Runs a region. Without reentrancy, saved tensors of the region are placeholders; the first one that
/// backward asks for computes the region again. With it, the region runs without gradients, and its node runs
/// it again and a backward of its own.
std::vector<Value> checkpoint(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                              const CheckpointOptions& options = {});

}  // namespace metaprof
