#pragma once
// Activation checkpointing (torch/utils/checkpoint.py, PyTorch 2.11): a region keeps its inputs and is
// computed again in backward.

#include "meta/autograd/state.h"

namespace metaprof {

/// A region as a function. It must be repeatable: it is called in forward and again in backward.
using CheckpointBody = std::function<std::vector<Value>(const std::vector<Value>&)>;

/// Runs a region. Without reentrancy, saved tensors of the region are placeholders; the first one that
/// backward asks for computes the region again, up to the last tensor that is needed. With it, the region
/// runs without gradients, and its node runs it again and a backward of its own.
std::vector<Value> checkpoint(Session& session, const CheckpointBody& body, const std::vector<Value>& inputs,
                              bool reentrant);

}  // namespace metaprof
