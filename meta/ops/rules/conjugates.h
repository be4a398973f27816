#pragma once
// Conjugates in formulas, as the framework's Tensor::conj gives them.

#include "meta/session/call.h"

namespace metaprof {

/// A view with a mark; of real numbers the tensor itself.
inline Tensor conj(const Tensor& tensor) {
  return is_complex(tensor.dtype()) ? call<"_conj">(session_of(tensor), tensor) : tensor;
}

}  // namespace metaprof
