#pragma once
// Arguments that an operator takes only with certain numbers in them, and how to stay among those.

#include "meta/op/registry.h"
#include "meta/session/session.h"

namespace metaprof {

enum class Domain {
  any,
  symmetric,          ///< the kernel reads one triangle only, the formula gives the gradient of both
  positive_definite,  ///< symmetric, with positive eigenvalues
  lengths,            ///< of the padded sequences of an example: all have its 5 steps
  pivots,             ///< rows that a factorisation exchanged: from 1, none above its own
};

Domain domain_of(const Operator& op, size_t argument);

/// A matrix of the domain as a function of any matrix with elements of (−2, 2): numbers that are moved one by
/// one stay in the domain, and gradients go through this function. `tensor` itself where any will do.
Tensor brought_into(Domain domain, Session& session, const Tensor& tensor);

/// Element `index` of pivots with `rows` rows: each row changes places with the next one.
int64_t pivot(int64_t index, int64_t rows);

}  // namespace metaprof
