#pragma once
// What losses share.

#include "meta/op/call.h"

namespace metaprof {

/// How a loss combines its elements. Numbers are at::Reduction's.
enum class Reduction : int64_t { none = 0, mean = 1, sum = 2 };

inline Reduction reduction(const Call& call) { return static_cast<Reduction>(call.integer("reduction")); }

/// Contiguous copies of these tensor arguments where they are not contiguous, made in this order and alive
/// together until all are made.
inline void contiguous_arguments(Call& call, std::initializer_list<Name> names) {
  SmallVector<Tensor, 4> copies;
  for (Name name : names)
    if (call.tensor(name).defined()) copies.push_back(call.contiguous(call.tensor(name)));
}

}  // namespace metaprof
