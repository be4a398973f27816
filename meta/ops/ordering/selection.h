#pragma once
// Operators that select elements along a dimension and say where they were.

#include "meta/autograd/engine/backward.h"
#include "meta/session/call.h"

namespace metaprof {

/// Results: `self` reduced over `dim` in its own dtype, and the places as i64; `keepdim` as given.
void value_and_index_meta(Call& call);

/// The gradient of values selected along `dim`: zeros with it at `indices`; reads "indices".
Gradients selected_backward(Backward& b);

/// A gradient that equal elements share: those of `self` equal to `value` (or NaN like it).
Tensor evenly_distributed(const Tensor& grad, const Tensor& self, const Tensor& value);

}  // namespace metaprof
