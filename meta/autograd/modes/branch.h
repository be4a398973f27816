#pragma once
// torch.cond (torch/_higher_order_ops/cond.py, PyTorch 2.11): a function that was chosen by data, as a node of autograd.

#include "meta/autograd/modes/run_again.h"

namespace metaprof {

/// Runs the chosen function. Its node saves the inputs; backward runs it again, and gives gradients of all inputs, also
/// of those that require none, and zeros for those that the function does not use. `condition` lives as long as the node.
std::vector<Value> branch(Session& session, const Value& condition, const RegionBody& chosen,
                          const std::vector<Value>& inputs);

}  // namespace metaprof
