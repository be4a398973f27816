#pragma once
// What losses share.

#include "meta/autograd/engine/backward.h"
#include "meta/session/call.h"

namespace metaprof {

/// How a loss combines its elements. Numbers are at::Reduction's.
enum class Reduction : int64_t { none = 0, mean = 1, sum = 2 };

inline Reduction reduction(const Call& call) { return static_cast<Reduction>(call.integer("reduction")); }
inline Reduction reduction(const Backward& b) { return static_cast<Reduction>(b.integer("reduction")); }

/// mean, sum or itself, as dispatched calls (at::Reduction, apply_loss_reduction).
Tensor apply_reduction(const Tensor& elements, Reduction reduction);

/// In a kernel: the blocks of a mean or sum of `elements` into result 0, which has memory already.
void reduce_into_result(Call& call, const Tensor& elements);

/// A composite loss.
constexpr Op composite_loss(std::string_view schema, std::string_view summary, void (*body)(Call&),
                            const Examples& examples) {
  return composite_of(schema, summary, body, examples, {.autocast = Autocast::fp32});
}

/// These tensor arguments, those that are given, or contiguous copies, made in this order.
inline SmallVector<Tensor, 4> contiguous_arguments(Call& call, std::initializer_list<Name> names) {
  SmallVector<Tensor, 4> copies;
  for (Name name : names)
    if (call.tensor(name).defined()) copies.push_back(call.contiguous(call.tensor(name)));
  return copies;
}

}  // namespace metaprof
