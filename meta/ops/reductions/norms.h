#pragma once
// The gradient of p-norms, shared by vector norms and distances.

#include "meta/autograd/engine/backward.h"

namespace metaprof {

/// Gradient of the p-norm `norm` of `self` (torch/csrc/autograd/FunctionsManual.cpp, norm_backward);
/// undefined for p = 0. `dims` as the operator was given them; ignored if `keepdim` or if self has no
/// dimension.
Tensor norm_gradient(Session& session, const Tensor& grad, const Tensor& self, double p, const Tensor& norm,
                     const Value& dims, bool keepdim);

}  // namespace metaprof
