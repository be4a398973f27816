#pragma once
// Gradients of what takes the larger or smaller of two values.

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {

/// The gradient of one of two values, for the place of which `lost` says that the other one was taken. Equal ones
/// share it (tools/autograd/derivatives.yaml, 2.15: maximum, fmax, clamp_min.Tensor). The mask is made first.
inline Tensor shared_gradient(Backward& b, const Tensor& lost, const Tensor& self, const Tensor& other) {
  const Tensor half = b.grad() / 2;
  const Tensor equal = eq(self, other);
  const Tensor gradient = where(equal, half, b.grad());
  return call<"masked_fill_.Scalar">(b.session, gradient, lost, 0);
}

}  // namespace metaprof
