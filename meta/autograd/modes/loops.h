#pragma once
// while_loop, scan and map of torch._higher_order_ops (PyTorch 2.11, run eagerly): a function that is called again and again,
// as a node of autograd.

#include "meta/autograd/modes/run_again.h"

namespace metaprof {

/// Calls the function on every slice of the first `sliced` inputs, in their first dimension, with the other inputs, and
/// stacks what it gives. Errors: there is no such input, or no slice.
std::vector<Value> map_over_slices(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                                   size_t sliced);

/// Of the inputs of a function that is called for slice after slice.
struct ScanInputs {
  size_t carried = 0;  ///< the first ones: what a call takes from the call before, and gives first
  size_t sliced = 0;   ///< those behind them, in their first dimension
};

/// Returns what the last call carries on, and what else the calls give, a tensor for all of them. Errors: as map_over_slices.
std::vector<Value> scan(Session& session, const RegionBody& body, const std::vector<Value>& inputs,
                        ScanInputs of);

struct WhileLoop {
  RegionBody condition, body;  ///< both take all inputs
  size_t carried = 0;  ///< the first inputs: what a trip takes from the trip before, and all that it gives
  int64_t trips = 0;   ///< how often the condition holds
};

std::vector<Value> while_loop(Session& session, const WhileLoop& loop, const std::vector<Value>& inputs);

/// What calls share: tensors of one place in all of them, in a new dimension.
std::vector<Value> stacked(Session& session, const std::vector<std::vector<Value>>& calls);
/// The i-th slice in the first dimension.
Value slice_of(Session& session, const Value& tensor, int64_t i);
/// How many slices the first of these inputs has. Errors: there is no input, it is no tensor, or it has no slice.
int64_t slices_of(std::span<const Value> inputs);

}  // namespace metaprof
